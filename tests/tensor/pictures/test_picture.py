"""Pictures that notebooks show and that can be saved."""

import pytest

from cytape.tensor.pictures.picture import Picture


def test_a_picture_is_saved(tmp_path):
    picture = Picture("<svg>\u2202</svg>")
    picture.save(tmp_path / "two.svg")
    text = (tmp_path / "two.svg").read_text(encoding="utf-8")
    assert text == str(picture) == picture._repr_svg_() == "<svg>\u2202</svg>"
    assert repr(picture) == "<Picture of 12 characters>"


def test_other_formats_are_refused(tmp_path):
    for name in ("two.png", "two"):
        with pytest.raises(ValueError, match=r"must end in '\.svg'"):
            Picture("<svg/>").save(tmp_path / name)
    assert not list(tmp_path.iterdir())
