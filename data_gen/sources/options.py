"""Multiple-choice questions as open ones: which of them cannot be asked without their options."""

import re

_NEEDS = re.compile(
    r"""\b(?:
        followings?                                             # which of the following, all the following
      | all\ (?:are|of\ (?:these|them)) | (?:of|among|amongst)\ (?:these|those|them)
      | except | (?:which|what|who)\b[^.?!]{0,60}\bnot | not\ (?:true|correct|a|an|the|seen|included|associated|used)
      | (?:true|false|correct|incorrect|wrong)\ (?:statements?|sentences?|about|regarding|of|for|is|are|match|pair|combination|order|sequence)
      | (?:is|are)\ (?:true|false|correct|incorrect|wrong)
      | least\ (?:likely|common|appropriate) | odd\ one | mismatch(?:ed)? | (?:in)?correctly\ matched
      | (?:above|given|listed|below|shown)\ (?:statements?|options?|image|figure|picture|below|above)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REFERS = re.compile(
    r"""(?:all|none|any|both|neither|either)(?:\ (?:of|the|these|this|those|them|are|correct|true|above|mentioned))*
      | (?:some|one|two|three|more\ than\ one)\ of\ (?:the\ above|these|them)
      | [a-e1-5](?:\s*(?:,|&|\+|and|or)\s*[a-e1-5])+(?:\ (?:are|is)\ (?:correct|true))?     # a and b; 1,2,3 are correct
      | (?:both|all|only|options?)\ [a-e1-5](?:\s*(?:,|&|\+|and|or)?\s*[a-e1-5])*(?:\ only)?
      | (?:true|false|yes|no|can't\ say|cannot\ say)
    """,
    re.IGNORECASE | re.VERBOSE,
)


def needs_options(question: str) -> bool:
    """Whether the question points at its options (`which of the following`, `all except`, `true about`, `is not`) and so asks nothing without them.

    A rule on words, in favour of leaving out: it drops some questions that could stand alone.
    """
    return _NEEDS.search(" ".join(question.split())) is not None


def refers_to_options(answer: str) -> bool:
    """Whether the whole answer speaks of options (`all of the above`, `both`, `a and c`, `1,2 are correct`) or only of truth (`true`, `no`)."""
    return _REFERS.fullmatch(" ".join(answer.split()).strip(" .")) is not None
