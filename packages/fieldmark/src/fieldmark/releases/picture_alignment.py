"""Whether two photos are copies: one is laid over the other by the patches they share, and compared all over.

Photos of one scene that were taken one after the other share patches too. What tells them from copies is that something
has moved: of copies, every block of the picture agrees, up to its brightness and contrast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from fieldmark.releases.picture_patches import BITS, Gray, Patches, gray_picture, patches_of

# Patches are taken for the same up to so many differing bits, and agree on a placement up to so many pixels.
MOST_BITS, NEAR_PX = 12, 6.0
# How far the pictures are blurred while they are laid over each other, and in how many rounds at most.
ROUNDS = ((3.0, 8), (1.5, 6))
# Below this correlation after the coarse rounds, and below this share of the larger picture, nothing more is done.
HOPEFUL, LEAST_OVERLAP = 0.8, 0.25
# Blocks to a side; how many of them must show something, which is a spread of so many gray values (of 255); pixels
# that are nearly black or white tell nothing of a picture that was made brighter.
BLOCKS, LEAST_BLOCKS, LEAST_SPREAD, DARKEST, BRIGHTEST = 8, 6, 2.0, 4.0, 245.0
# All but the worst twentieth of the blocks (a watermark, a date) correlate at least so well. Chosen on photos of fungi
# and birds and their copies, and on photos of the same specimens (studies/evidence/copies.py): copies made brighter,
# the hardest, lie above in 97 of 100 cases, different photos of one specimen at most at 0.7.
ALIKE, WORST_BLOCKS = 0.93, 0.05
Axis = NDArray[np.float64]
Laid = tuple[NDArray[np.intp], NDArray[np.intp]]


def _matrix(code: int) -> NDArray[np.int64]:
    turned = np.diag([-1 if code & 1 else 1, -1 if code & 2 else 1])
    return turned[::-1] if code & 4 else turned


_MATRICES = [_matrix(code) for code in range(8)]
# The orientation that brings a patch of the second orientation to one of the first.
_BETWEEN = np.array(
    [
        [next(code for code in range(8) if (_MATRICES[code] == one.T @ other).all()) for other in _MATRICES]
        for one in _MATRICES
    ]
)


@dataclass(frozen=True)
class GrayPicture:
    """A photo as it is compared."""

    gray: Gray

    @classmethod
    def of(cls, data: bytes) -> GrayPicture:
        """The picture of a photo.

        Raises:
            OSError, SyntaxError, ValueError: When it cannot be read to its end.
        """
        return cls(gray_picture(data))

    @cached_property
    def patches(self) -> Patches:
        """Its patches, the whole first."""
        return patches_of(self.gray)

    def turned(self, code: int) -> Gray:
        """The picture mirrored up-down (1), left-right (2), and then along its diagonal (4)."""
        gray = self.gray[:: -1 if code & 1 else 1, :: -1 if code & 2 else 1]
        return gray.T if code & 4 else gray


class Placement(NamedTuple):
    """Where a picture lies in another one that was turned: there = scale * here + shift, for y and x."""

    code: int
    scale: Axis
    shift: Axis


def are_copies(one: GrayPicture, other: GrayPicture) -> bool:
    """Whether one picture is the other one: scaled, cut, mirrored, turned by quarters, brighter or compressed anew."""
    if np.array_equal(one.gray, other.gray):
        return True  # however plain
    return any(agreement(one, other, placement) >= ALIKE for placement in placements(one, other))


def placements(one: GrayPicture, other: GrayPicture) -> list[Placement]:
    """Where the other picture may lie on the first: as most patches have it, and as the wholes do."""
    mine, theirs = one.patches, other.patches
    bits = np.bitwise_count(mine.hashes[:, None] ^ theirs.hashes)
    first, second = np.nonzero(bits <= MOST_BITS)
    if not len(first):
        return []
    code = _BETWEEN[mine.orientation[first], theirs.orientation[second]]
    here, reach = mine.centers[first].astype(np.float64), mine.reach[first].astype(np.float64)
    there, there_reach = _turned_points(theirs, second, code, other.gray.shape)
    scale = there_reach / reach
    shift = there - scale * here
    off = abs(scale[:, None] * here + shift[:, None] - there).max(axis=2)
    agree = (off < NEAR_PX) & (code[:, None] == code)
    agree &= abs(np.log2(scale[:, None] / scale)).max(axis=2) < 0.5
    votes = agree.sum(axis=1)
    wholes = np.flatnonzero((first < mine.wholes) & (second < theirs.wholes))
    best = list(dict.fromkeys([int(np.argmax(votes - bits[first, second] / (BITS + 1))), *wholes[:1].tolist()]))
    return [
        Placement(int(code[row]), *_fitted(here[agree[row]], there[agree[row]], scale[row], reach[row]))
        for row in best
        if votes[row] > 1 or row in wholes
    ]


def _turned_points(
    patches: Patches, rows: NDArray[np.intp], code: NDArray[np.intp], shape: tuple[int, ...]
) -> tuple[Axis, Axis]:
    """Centers and half sides of patches after their picture was turned."""
    points, reach = patches.centers[rows].astype(np.float64), patches.reach[rows].astype(np.float64)
    for axis, bit in ((0, 1), (1, 2)):
        points[:, axis] = np.where(code & bit, shape[axis] - 1 - points[:, axis], points[:, axis])
    transposed = (code & 4).astype(np.bool_)[:, None]
    return np.where(transposed, points[:, ::-1], points), np.where(transposed, reach[:, ::-1], reach)


def _fitted(here: Axis, there: Axis, scale: Axis, reach: Axis) -> tuple[Axis, Axis]:
    """The scale and shift that suit all patches best; a patch alone is believed as far as it reaches."""
    middle, their_middle = here.mean(axis=0), there.mean(axis=0)
    spread, weight = here - middle, reach**2
    fitted = ((spread * (there - their_middle)).sum(axis=0) + weight * scale) / ((spread**2).sum(axis=0) + weight)
    return fitted, their_middle - fitted * middle


def agreement(one: GrayPicture, other: GrayPicture, placement: Placement) -> float:
    """Lays the other picture over the first and compares them block by block.

    Returns:
        The correlation of the blocks that agree least, without the worst twentieth; 0 where nothing can be compared.
    """
    turned = other.turned(placement.code)
    scale, shift = placement.scale, placement.shift
    correlation = 0.0
    for sigma, times in ROUNDS:
        # Both as blurred on the scene: what lies at twice the scale is blurred twice as far.
        here, there = gaussian_filter(one.gray, sigma), gaussian_filter(turned, sigma * scale)
        slopes = np.gradient(there)
        for _ in range(times):
            laid = _overlap(here.shape, there.shape, scale, shift)
            if laid is None:
                return 0.0
            step = _step(here, there, slopes, laid, scale, shift)
            scale, shift = scale + step[:2], shift + step[2:]
            if (abs(step[:2]) * here.shape + abs(step[2:]) < 0.02).all():
                break
        laid = _overlap(here.shape, there.shape, scale, shift)
        if laid is None:
            return 0.0
        mine, theirs = here[np.ix_(*laid)], _sampled(there, laid, scale, shift)
        correlation = _correlation_of_blocks(mine, theirs)
        if float(np.corrcoef(mine.reshape(-1), theirs.reshape(-1))[0, 1]) < HOPEFUL:
            return 0.0
    return correlation


def _overlap(here: tuple[int, ...], there: tuple[int, ...], scale: Axis, shift: Axis) -> Laid | None:
    """The rows and columns of the first picture that the other one covers; None where that is little of either."""
    if not ((scale > LEAST_OVERLAP) & (scale < 1 / LEAST_OVERLAP)).all():
        return None
    laid = []
    for axis in range(2):
        places = scale[axis] * np.arange(here[axis]) + shift[axis]
        laid.append(np.flatnonzero((places >= 0) & (places <= there[axis] - 1)))
    covered = len(laid[0]) * len(laid[1])
    share = min(covered / (here[0] * here[1]), covered * float(scale.prod()) / (there[0] * there[1]))
    return (laid[0], laid[1]) if share >= LEAST_OVERLAP and min(map(len, laid)) >= 2 * BLOCKS else None


def _sampled(picture: Gray, laid: Laid, scale: Axis, shift: Axis) -> Gray:
    """A picture at the places where rows and columns of another one lie on it."""
    for axis in range(2):
        places = np.minimum(scale[axis] * laid[axis] + shift[axis], picture.shape[axis] - 1.001)
        low = np.maximum(places.astype(np.intp), 0)
        share = np.expand_dims((places - low).astype(np.float32), 1 - axis)
        picture = np.take(picture, low, axis) * (1 - share) + np.take(picture, low + 1, axis) * share
    return picture


def _step(here: Gray, there: Gray, slopes: tuple[Gray, Gray], laid: Laid, scale: Axis, shift: Axis) -> Axis:
    """How scale and shift change for the least squared difference (Gauss and Newton)."""
    mine, theirs = here[np.ix_(*laid)], _sampled(there, laid, scale, shift)
    spread = theirs - theirs.mean()
    gain = float((spread * mine).sum() / max(float((spread**2).sum()), 1e-6))
    missing = (mine - mine.mean()) - gain * spread
    down, right = (gain * _sampled(slope, laid, scale, shift) for slope in slopes)
    y, x = laid[0][:, None].astype(np.float32), laid[1].astype(np.float32)
    columns = np.stack([down * y, right * x, down, right]).reshape(4, -1)
    columns -= columns.mean(axis=1, keepdims=True)
    squares = columns.astype(np.float64) @ columns.T
    return np.linalg.solve(squares + 1e-6 * np.diag(np.diag(squares) + 1), columns @ missing.reshape(-1))


def _correlation_of_blocks(mine: Gray, theirs: Gray) -> float:
    """The correlation within blocks that show something: at least this in all but the worst twentieth of them."""
    seen = (np.minimum(mine, theirs) > DARKEST) & (np.maximum(mine, theirs) < BRIGHTEST)
    weight = _in_blocks(seen)
    counted = np.maximum(weight.sum(axis=1, keepdims=True), 1)
    blocks = [_in_blocks(picture) for picture in (mine, theirs)]
    blocks = [(block - (block * weight).sum(axis=1, keepdims=True) / counted) * weight for block in blocks]
    spread = [np.sqrt((block**2).sum(axis=1) / counted[:, 0]) for block in blocks]
    showing = (np.maximum(*spread) > LEAST_SPREAD) & (weight.mean(axis=1) > 0.5)
    if np.count_nonzero(showing) < LEAST_BLOCKS:
        return 0.0
    together = (blocks[0] * blocks[1]).sum(axis=1) / counted[:, 0] / np.maximum(spread[0] * spread[1], 1e-6)
    return float(np.quantile(together[showing], WORST_BLOCKS))


def _in_blocks(picture: NDArray[np.generic]) -> NDArray[np.float64]:
    """The pixels of each of 8 x 8 blocks, one row each."""
    height, width = (side // BLOCKS for side in picture.shape)
    blocks = picture[: height * BLOCKS, : width * BLOCKS].reshape(BLOCKS, height, BLOCKS, width)
    return blocks.transpose(0, 2, 1, 3).reshape(BLOCKS * BLOCKS, -1).astype(np.float64)
