import doctest
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_examples_give_the_results_they_show():
    text = README.read_text().replace("```", "")  # else a fence would belong to the result above it
    examples = doctest.DocTestParser().get_doctest(text, {}, README.name, str(README), 0)
    report = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
        examples, out=report.append
    )
    assert results.attempted > 0
    assert results.failed == 0, "".join(report)
