"""What holds for all tests."""

import gc


def pytest_collection_finish():
    """Keep the garbage collector from looking at the tests themselves, tens of thousands.

    Hundreds of tests collect garbage, and would look at them each time.
    """
    gc.collect()
    gc.freeze()
