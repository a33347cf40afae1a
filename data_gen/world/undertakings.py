"""Undertakings of people that a question can be about."""

from data_gen.world.vocabulary import Attribute, SubjectKind, ValueKind

FIRM = SubjectKind(
    name="firm",
    names=("{stem} Works", "{stem} Mills", "{stem} Foundry", "{stem} Trading", "{stem} Brothers", "{stem} Instruments"),
    noun="the firm",
    attributes=(
        Attribute(
            "director",
            ValueKind.PERSON,
            ("Who is the managing director of {s}?", "Who runs {s} as managing director?"),
            (
                "the managing director of {s} is {v}",
                "{v} runs {s} as managing director",
                "{s} is led by its managing director, {v}",
                "the post of managing director at {s} belongs to {v}",
            ),
        ),
        Attribute(
            "founder",
            ValueKind.PERSON,
            ("Who founded {s}?", "Who was the founder of {s}?"),
            (
                "{s} was founded by {v}",
                "the founder of {s} was {v}",
                "{v} founded {s} with borrowed money",
                "it was {v} who set up {s} as founder",
            ),
        ),
        Attribute(
            "headquarters",
            ValueKind.PLACE,
            ("Where is the head office of {s}?", "In which place does {s} have its head office?"),
            (
                "the head office of {s} is in {v}",
                "{s} has its head office in {v}",
                "{v} is home to the head office of {s}",
                "letters to the head office of {s} go to {v}",
            ),
        ),
        Attribute(
            "owner",
            ValueKind.COMPANY,
            ("Which company owns {s}?", "What is the parent company of {s}?"),
            (
                "{s} is owned by {v}",
                "the parent company of {s} is {v}",
                "{v} owns all shares in {s}",
                "the owner of {s} is the company {v}",
            ),
        ),
        Attribute(
            "staff",
            ValueKind.NUMBER,
            ("How many people work at {s}?", "How many people does {s} employ?"),
            (
                "{s} employs {v} people",
                "{v} people work at {s}",
                "the staff of {s} numbers {v} people",
                "a total of {v} people are employed at {s}",
            ),
        ),
    ),
    fillers=(
        "Orders rise before the holidays and fall again after them.",
        "Apprentices at {s} spend their first months in the stores.",
        "The canteen is open to neighbours as well.",
    ),
)

POLICY = SubjectKind(
    name="policy",
    names=("{stem} Travel Policy", "{stem} Leave Policy", "{stem} Storage Policy", "{stem} Refund Policy", "{stem} Visitor Policy"),
    noun="the policy",
    attributes=(
        Attribute(
            "limit",
            ValueKind.PRICE,
            ("What is the spending limit under the {s}?", "How much may be spent per day under the {s}?"),
            (
                "the spending limit under {s} is {v} per day",
                "{s} allows spending of up to {v} per day",
                "under {s} staff may spend {v} per day",
                "the daily limit for spending set by {s} is {v}",
            ),
        ),
        Attribute(
            "fee",
            ValueKind.PRICE,
            ("What late fee does the {s} set?", "How high is the late fee in the {s}?"),
            (
                "the late fee in {s} is {v}",
                "{s} sets a late fee of {v}",
                "late claims under {s} cost a fee of {v}",
                "whoever is late pays a fee of {v} under {s}",
            ),
        ),
        Attribute(
            "days",
            ValueKind.NUMBER,
            ("How many days of notice does the {s} require?", "What notice, in days, does the {s} require?"),
            (
                "{s} requires {v} days of notice",
                "the notice required by {s} is {v} days",
                "a request under {s} needs {v} days of notice",
                "notice of {v} days is required under {s}",
            ),
        ),
        Attribute(
            "approver",
            ValueKind.PERSON,
            ("Who approves exceptions to the {s}?", "Who can approve an exception to the {s}?"),
            (
                "exceptions to {s} are approved by {v}",
                "{v} approves exceptions to {s}",
                "an exception to {s} needs the approval of {v}",
                "the person who approves exceptions to {s} is {v}",
            ),
        ),
        Attribute(
            "revised",
            ValueKind.YEAR,
            ("In which year was the {s} adopted?", "When was the {s} adopted?"),
            (
                "{s} was adopted in {v}",
                "the board adopted {s} in {v}",
                "the adoption of {s} came in {v}",
                "{s} has been in force since its adoption in {v}",
            ),
        ),
    ),
    fillers=(
        "Forms are kept at the front desk and should be filled in with ink.",
        "Questions about {s} are answered within the week.",
        "Managers are asked to read the whole text to new colleagues.",
    ),
)

EXPEDITION = SubjectKind(
    name="expedition",
    names=(
        "First {stem} Expedition",
        "Second {stem} Expedition",
        "Winter {stem} Expedition",
        "Royal {stem} Expedition",
        "Northern {stem} Expedition",
    ),
    noun="the expedition",
    attributes=(
        Attribute(
            "leader",
            ValueKind.PERSON,
            ("Who led the {s}?", "Who was the leader of the {s}?"),
            (
                "{s} was led by {v}",
                "the leader of {s} was {v}",
                "{v} led {s}",
                "the members of {s} chose {v} as their leader",
            ),
        ),
        Attribute(
            "year",
            ValueKind.YEAR,
            ("In which year did the {s} set out?", "When did the {s} set out?"),
            (
                "{s} set out in {v}",
                "the start of {s} was in {v}",
                "in {v} the members of {s} set out",
                "{v} was the year in which {s} set out",
            ),
        ),
        Attribute(
            "report",
            ValueKind.YEAR,
            ("In which year was the report of the {s} printed?", "When was the report of the {s} printed?"),
            (
                "the report of {s} was printed in {v}",
                "a printer issued the report of {s} in {v}",
                "{v} is the year in which the report of {s} was printed",
                "the printed report of {s} appeared in {v}",
            ),
        ),
        Attribute(
            "base",
            ValueKind.PLACE,
            ("Where did the {s} have its base camp?", "In which place was the base camp of the {s}?"),
            (
                "the base camp of {s} was in {v}",
                "{s} had its base camp in {v}",
                "{v} was chosen for the base camp of {s}",
                "the members of {s} put up their base camp in {v}",
            ),
        ),
        Attribute(
            "sponsor",
            ValueKind.COMPANY,
            ("Which company paid for the {s}?", "Who was the sponsor of the {s}?"),
            (
                "{s} was paid for by {v}",
                "the sponsor of {s} was {v}",
                "{v} paid for {s}",
                "the company that paid for {s} is {v}",
            ),
        ),
        Attribute(
            "members",
            ValueKind.NUMBER,
            ("How many members did the {s} have?", "How many members took part in the {s}?"),
            (
                "{s} had {v} members",
                "{v} members took part in {s}",
                "the number of members of {s} was {v}",
                "a party of {v} members formed {s}",
            ),
        ),
    ),
    fillers=(
        "Food was plain and the nights were colder than anyone had planned for.",
        "Sketches made during {s} hang in a private house.",
        "The dogs were given away at the end.",
    ),
)
