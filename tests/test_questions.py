"""docs/questions.md: each answer names a definition that exists and shows lines of it."""

import pytest

from tests.cases import each
from tests.docs_source import ROOT, assert_is_source, steps

PAGE = ROOT / "docs" / "questions.md"
QUESTIONS = PAGE.read_text().split("\n## ")[1:]
ANSWERS = [answer for question in QUESTIONS for answer in steps(question)]


def test_there_are_ten_questions_with_answers():
    assert [question.split(".")[0] for question in QUESTIONS] == [str(i) for i in range(1, 11)]
    assert all("?" in question.split("\n")[0] and steps(question) for question in QUESTIONS)


@each("path, name, excerpts", ANSWERS, ids=[answer[1] for answer in ANSWERS])
def test_an_answer_names_a_definition_and_shows_its_source(path, name, excerpts):
    assert_is_source(path, name, excerpts)


@each("path, name, excerpts", [
    ("cytape/ops/elementwise.py", "no_such_op", []),
    ("cytape/ops/elementwise.py", "tanh", ["tanh = another line\n"]),
])
def test_a_wrong_answer_is_noticed(path, name, excerpts):
    with pytest.raises(AssertionError):
        assert_is_source(path, name, excerpts)
