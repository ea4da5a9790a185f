import numpy as np
import pytest
import torch

from fieldmark.audio.spectrograms import SPECTROGRAMS, MelSettings, MelSpectrogram, band_edges
from fieldmark.training.gabor import GaborFrontEnd, stride_of

SMALL = MelSettings(8000, 0.5, bands=12, frames=26, fft=256, low_hz=200, high_hz=3500)


def tones(frequencies, settings=SMALL) -> torch.Tensor:
    time = np.arange(settings.samples) / settings.rate_hz
    return torch.from_numpy(np.stack([np.sin(2 * np.pi * f * time) for f in frequencies]).astype(np.float32))


def test_a_tone_is_loudest_in_the_band_that_is_centered_on_it():
    centers = band_edges(SMALL)[1:-1]
    with torch.no_grad():
        power = GaborFrontEnd(SMALL).power(tones(centers))
    middle = power[:, :, 5:-5].mean(dim=2)
    assert power.shape == (12, 12, SMALL.frames)
    assert middle.argmax(dim=1).tolist() == list(range(12))
    assert middle.diagonal().numpy() == pytest.approx(0.25, rel=0.05)  # half of the amplitude 1, squared


def test_it_begins_with_the_picture_of_the_mel_spectrogram():
    rng = np.random.default_rng(0)
    sound = tones([700])[0].numpy() * np.hanning(SMALL.samples) + 0.05 * rng.normal(size=SMALL.samples)
    sound[2000:2600] += 0.5 * tones([2500])[0].numpy()[2000:2600]
    sounds = torch.from_numpy(sound.astype(np.float32))[None]
    mel = MelSpectrogram(SMALL, "cpu").loudness(sounds)[0].numpy()
    with torch.no_grad():
        gabor = 10 * GaborFrontEnd(SMALL).power(sounds).log10()[0].numpy()
    # Slaney's bands have equal area, so that wide ones are fainter: what a band says over time is compared.
    by_band = [np.corrcoef(one, other)[0, 1] for one, other in zip(mel, gabor, strict=True)]
    assert np.median(by_band) > 0.8


def test_centers_widths_and_smoothing_learn():
    front_end = GaborFrontEnd(SMALL).double()
    sounds = tones([900, 1500]).double()

    def loudness() -> torch.Tensor:
        return front_end.power(sounds)[:, 4].mean().log()

    loudness().backward()
    for parameter in front_end.parameters():
        gradient, step = parameter.grad[4].item(), 1e-6
        with torch.no_grad():
            before = loudness()
            parameter[4] += step
            after = loudness()
            parameter[4] -= step
        assert gradient == pytest.approx(float(after - before) / step, rel=1e-3, abs=1e-8)
    assert front_end.log_center.grad[4] != 0 and front_end.log_deviation.grad[4] != 0


def test_pictures_are_scaled_and_masked_in_training_alone():
    front_end = GaborFrontEnd(SMALL, mask_time=0.5, mask_bands=0.5).eval()
    sounds = tones([900, 1500, 0])  # the last is silence
    with torch.no_grad():
        plain = front_end(sounds)
        torch.manual_seed(0)
        masked, again = front_end.train()(sounds), None
        torch.manual_seed(0)
        again = front_end(sounds)
    assert plain.shape == (3, 1, 12, SMALL.frames) and plain.min() == 0 and plain[:2].amax() == 1
    assert not plain[2].any() and torch.isfinite(plain).all()
    assert torch.equal(masked, again) and (masked == 0).sum() > (plain == 0).sum()


def test_every_spectrogram_has_a_front_end_of_its_size():
    for settings in SPECTROGRAMS.values():
        assert settings.hop % stride_of(settings.hop, settings.rate_hz) == 0
    short = SPECTROGRAMS["birdclef-baseline"]
    with torch.no_grad():
        picture = GaborFrontEnd(short).eval()(torch.zeros(1, short.samples))
    assert picture.shape == (1, 1, short.bands, short.frames)
