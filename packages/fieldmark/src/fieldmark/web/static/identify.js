// Dropping files, previews and the map of the identify page; without this script the form works as it is.
"use strict";
(() => {
  const drop = document.getElementById("drop");
  const files = document.getElementById("files");
  const previews = document.getElementById("previews");
  const show = () => {
    previews.replaceChildren();
    for (const file of [...files.files].slice(0, 6)) {
      if (file.type.startsWith("image/") && file.size < 3e7) {
        const reader = new FileReader();
        const image = document.createElement("img");
        image.alt = file.name;
        reader.onload = () => { image.src = reader.result; };
        reader.readAsDataURL(file);
        previews.append(image);
      } else {
        const name = document.createElement("span");
        name.textContent = file.name;
        previews.append(name);
      }
    }
  };
  files.addEventListener("change", show);
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) {
      files.files = event.dataTransfer.files;
      show();
    }
  });

  const world = document.getElementById("world");
  const here = document.getElementById("here");
  const lat = document.getElementById("lat");
  const lon = document.getElementById("lon");
  const move = () => {
    const [north, east] = [Number.parseFloat(lat.value), Number.parseFloat(lon.value)];
    const there = Math.abs(north) <= 90 && Math.abs(east) <= 180;
    here.setAttribute("cx", there ? (east + 180) * 2 : -20);
    here.setAttribute("cy", there ? (90 - north) * 2 : -20);
  };
  for (const field of [lat, lon]) field.addEventListener("input", move);
  world.addEventListener("click", (event) => {
    const box = world.getBoundingClientRect();
    lon.value = ((event.clientX - box.left) / box.width * 360 - 180).toFixed(1);
    lat.value = (90 - (event.clientY - box.top) / box.height * 180).toFixed(1);
    move();
  });
  document.getElementById("map-hint").textContent = "Click the map, or type degrees. It shows roughly where; the fields count.";
  move();
  document.getElementById("ask").addEventListener("submit", (event) => {
    const button = event.submitter || document.querySelector("#ask .button");
    button.textContent = "Looking …";
  });
})();
