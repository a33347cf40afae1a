from rag.errors import InputError, nearest


def test_nearest_offers_the_closest_valid_name() -> None:
    assert nearest("treshold", ["seed", "threshold"]) == "; did you mean 'threshold'?"


def test_nearest_is_silent_when_nothing_is_close() -> None:
    assert nearest("zzz", ["seed", "threshold"]) == ""
    assert nearest("seed", []) == ""


def test_an_input_error_is_a_value_error() -> None:
    assert issubclass(InputError, ValueError)
