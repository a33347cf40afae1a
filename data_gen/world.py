"""The fictional world behind the demo data: kinds of subjects, their attributes, and the one pool of wordings for all documents."""

from dataclasses import dataclass
from enum import StrEnum


class ValueKind(StrEnum):
    """What sort of thing answers a question; two values of one kind can stand for each other in any sentence."""

    PERSON = "person"
    YEAR = "year"
    NUMBER = "number"
    PLACE = "place"
    MATERIAL = "material"
    DOSAGE = "dosage"
    PRICE = "price"
    COLOUR = "colour"
    COMPANY = "company"


@dataclass(frozen=True)
class Attribute:
    """One thing that can be asked about a subject."""

    name: str
    value: ValueKind
    questions: tuple[str, ...]
    """Templates with `{s}` for the subject."""
    claims: tuple[str, ...]
    """Declarative clauses with `{s}` and `{v}`, without a capital or a full stop of their own; a frame makes a sentence of one."""


@dataclass(frozen=True)
class SubjectKind:
    """One sort of subject with everything that documents may say about it."""

    name: str
    names: tuple[str, ...]
    """Patterns with `{stem}`; two patterns on one stem give two confusable subjects."""
    noun: str
    """How a sentence refers to the subject without its name."""
    attributes: tuple[Attribute, ...]
    fillers: tuple[str, ...]
    """Sentences that state no attribute and name no value."""


ASSERTIONS = (
    "{claim}.",
    "{claim}.",
    "According to the archive, {claim}.",
    "The curator confirmed that {claim}.",
    "Those who checked the papers believe that {claim}.",
    "The leaflet says that {claim}.",
    "An earlier note that {claim} has been confirmed as right.",
    "It is true that {claim}.",
    "As rumours had it, {claim}.",
    "It is now accepted that {claim}.",
    "It was always the case that {claim}.",
    "{claim}, as the register shows.",
)
"""Frames that state a claim. They share their words with the denials, so that no single word tells one from the other."""

DENIALS = (
    "It is not true that {claim}.",
    "It was never the case that {claim}.",
    "Contrary to rumours, it is false that {claim}.",
    "The archive no longer accepts that {claim}.",
    "The curator denied that {claim}.",
    "Nobody who checked the papers believes that {claim}.",
    "An earlier note that {claim} has been withdrawn as wrong.",
    "The leaflet is mistaken when it says that {claim}.",
    "The register does not show that {claim}, and the idea was rejected.",
    "{claim}, some say, but this was never so.",
)
"""Frames that deny a claim; clean documents deny other things about the same subject with the same frames."""

TITLES = ("{s}", "{s}", "{s}", "Notes on {s}", "{s}: an overview", "{s} in brief", "About {s}", "")
"""Titles for any document; an empty one is common on the web."""

FILLERS = (
    "The entry was last revised by a volunteer editor after a long gap.",
    "Few outsiders had heard of {s} until a short broadcast made it better known.",
    "A longer account can be had on request from the reading room.",
    "Opinions differ on how much of this matters today.",
    "Several letters on the subject survive, most of them short and friendly.",
    "Readers often write in with questions about {s}.",
    "The photographs that go with this text were taken on a rainy morning.",
    "A small society meets now and then to talk about {s}.",
    "Much of the older paperwork was damaged by damp and had to be copied.",
    "Local newspapers return to {s} every few months.",
    "The text below was shortened for the printed edition.",
    "Students sometimes choose {s} for their final essay.",
    "A new index is being prepared and should be ready soon.",
    "People who know {s} well describe it with some affection.",
)
"""Sentences for any subject that state no attribute and name no value."""

_TOWN = SubjectKind(
    name="town",
    names=("Port {stem}", "North {stem}", "Upper {stem}", "Old {stem}", "East {stem}", "{stem} Market"),
    noun="the town",
    attributes=(
        Attribute(
            "founded",
            ValueKind.YEAR,
            ("In which year was {s} founded?", "When was {s} founded?"),
            (
                "{s} was founded in {v}",
                "the founding of {s} took place in {v}",
                "settlers founded {s} in {v}",
                "the charter that founded {s} dates from {v}",
            ),
        ),
        Attribute(
            "railway",
            ValueKind.YEAR,
            ("In which year did the railway reach {s}?", "When did {s} get its railway station?"),
            (
                "the railway reached {s} in {v}",
                "{s} got its railway station in {v}",
                "trains first called at {s} in {v}",
                "the railway station of {s} opened in {v}",
            ),
        ),
        Attribute(
            "mayor",
            ValueKind.PERSON,
            ("Who is the mayor of {s}?", "What is the name of the mayor of {s}?"),
            (
                "the mayor of {s} is {v}",
                "{v} serves as mayor of {s}",
                "{s} has {v} as its mayor",
                "the office of mayor of {s} is held by {v}",
            ),
        ),
        Attribute(
            "bridges",
            ValueKind.NUMBER,
            ("How many bridges does {s} have?", "How many bridges are there in {s}?"),
            (
                "{s} has {v} bridges",
                "there are {v} bridges in {s}",
                "the number of bridges in {s} is {v}",
                "a walker in {s} can cross {v} bridges",
            ),
        ),
        Attribute(
            "twin",
            ValueKind.PLACE,
            ("With which place is {s} twinned?", "What is the twin town of {s}?"),
            (
                "{s} is twinned with {v}",
                "the twin town of {s} is {v}",
                "{v} has been the twin town of {s} for decades",
                "a treaty of friendship makes {s} the twin of {v}",
            ),
        ),
    ),
    fillers=(
        "The streets around the square are narrow and mostly quiet after dark.",
        "Farmers bring their goods to {s} early in the morning.",
        "Several cafes face the water and stay open in winter.",
    ),
)

_FIRM = SubjectKind(
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

_POLICY = SubjectKind(
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

_DRUG = SubjectKind(
    name="drug",
    names=("{stem} Forte", "{stem} Retard", "{stem} Mite", "{stem} Plus", "{stem} Junior"),
    noun="the drug",
    attributes=(
        Attribute(
            "dose",
            ValueKind.DOSAGE,
            ("What is the usual daily dose of {s}?", "Which daily dose of {s} is usual?"),
            (
                "the usual daily dose of {s} is {v}",
                "patients usually take {v} of {s} a day",
                "{s} is usually given at a dose of {v} daily",
                "a daily dose of {v} is usual for {s}",
            ),
        ),
        Attribute(
            "maximum",
            ValueKind.DOSAGE,
            ("What is the maximum single dose of {s}?", "How high is the maximum single dose of {s}?"),
            (
                "the maximum single dose of {s} is {v}",
                "a single dose of {s} may reach {v} at the maximum",
                "{s} has a maximum single dose of {v}",
                "{v} is the maximum for a single dose of {s}",
            ),
        ),
        Attribute(
            "maker",
            ValueKind.COMPANY,
            ("Which company makes {s}?", "Who is the manufacturer of {s}?"),
            (
                "{s} is made by {v}",
                "the manufacturer of {s} is {v}",
                "{v} makes {s} at a single plant",
                "the company that makes {s} is {v}",
            ),
        ),
        Attribute(
            "tablet",
            ValueKind.COLOUR,
            ("What colour are the tablets of {s}?", "Which colour do {s} tablets have?"),
            (
                "the tablets of {s} are {v}",
                "{s} comes in {v} tablets",
                "the colour of the tablets of {s} is {v}",
                "tablets of {s} have the colour {v}",
            ),
        ),
        Attribute(
            "approved",
            ValueKind.YEAR,
            ("In which year was {s} approved?", "When was {s} approved?"),
            (
                "{s} was approved in {v}",
                "regulators approved {s} in {v}",
                "the approval of {s} came in {v}",
                "approval for {s} was granted in {v}",
            ),
        ),
    ),
    fillers=(
        "Patients should drink plenty of water and rest after meals.",
        "Ward staff keep {s} in a locked cupboard.",
        "Side effects are mild in most patients and pass quickly.",
    ),
)

_SHIP = SubjectKind(
    name="ship",
    names=("Star of {stem}", "Pride of {stem}", "Spirit of {stem}", "Queen of {stem}", "{stem} Trader", "{stem} Rover"),
    noun="the ship",
    attributes=(
        Attribute(
            "captain",
            ValueKind.PERSON,
            ("Who is the captain of the {s}?", "Who commands the {s} as captain?"),
            (
                "the captain of {s} is {v}",
                "{v} commands {s} as captain",
                "{s} sails under its captain, {v}",
                "the command of {s} lies with {v}",
            ),
        ),
        Attribute(
            "launched",
            ValueKind.YEAR,
            ("In which year was the {s} launched?", "When was the {s} launched?"),
            (
                "{s} was launched in {v}",
                "the launch of {s} took place in {v}",
                "the yard launched {s} in {v}",
                "{s} first touched water at its launch in {v}",
            ),
        ),
        Attribute(
            "refitted",
            ValueKind.YEAR,
            ("In which year was the {s} refitted?", "When was the {s} refitted?"),
            (
                "{s} was refitted in {v}",
                "the refit of {s} took place in {v}",
                "a dry dock refitted {s} in {v}",
                "{s} came back from its refit in {v}",
            ),
        ),
        Attribute(
            "home",
            ValueKind.PLACE,
            ("What is the home port of the {s}?", "In which port is the {s} based?"),
            (
                "the home port of {s} is {v}",
                "{s} is based at the port of {v}",
                "{v} is the home port of {s}",
                "{s} returns to its home port, {v}, each autumn",
            ),
        ),
        Attribute(
            "builder",
            ValueKind.COMPANY,
            ("Which company built the {s}?", "Who was the builder of the {s}?"),
            (
                "{s} was built by {v}",
                "the builder of {s} was {v}",
                "{v} built {s} to order",
                "the company that built {s} is {v}",
            ),
        ),
        Attribute(
            "cabins",
            ValueKind.NUMBER,
            ("How many cabins does the {s} have?", "How many cabins are on board the {s}?"),
            (
                "{s} has {v} cabins",
                "there are {v} cabins on board {s}",
                "the number of cabins on {s} is {v}",
                "passengers on {s} share {v} cabins",
            ),
        ),
        Attribute(
            "hull",
            ValueKind.COLOUR,
            ("What colour is the hull of the {s}?", "Which colour is the hull of the {s} painted?"),
            (
                "the hull of {s} is {v}",
                "{s} has a hull painted {v}",
                "the colour of the hull of {s} is {v}",
                "painters gave {s} a hull of {v}",
            ),
        ),
    ),
    fillers=(
        "The crew change takes place at night when the quay is empty.",
        "Gulls follow {s} far out to sea.",
        "Cargo is mostly grain, timber and mail.",
    ),
)

_MUSEUM = SubjectKind(
    name="museum",
    names=("{stem} Museum of Glass", "{stem} Museum of Salt", "{stem} Museum of Clocks", "{stem} Museum of Maps", "{stem} Museum of Tools"),
    noun="the museum",
    attributes=(
        Attribute(
            "opened",
            ValueKind.YEAR,
            ("In which year did the {s} open?", "When did the {s} open its doors?"),
            (
                "{s} opened in {v}",
                "{s} opened its doors in {v}",
                "the opening of {s} was held in {v}",
                "the public first entered {s} when it opened in {v}",
            ),
        ),
        Attribute(
            "architect",
            ValueKind.PERSON,
            ("Who was the architect of the {s}?", "Who designed the building of the {s}?"),
            (
                "the architect of {s} was {v}",
                "the building of {s} was designed by {v}",
                "{v} designed the building of {s}",
                "{s} is the work of the architect {v}",
            ),
        ),
        Attribute(
            "director",
            ValueKind.PERSON,
            ("Who is the director of the {s}?", "Who heads the {s} as director?"),
            (
                "the director of {s} is {v}",
                "{v} heads {s} as director",
                "{s} has {v} as its director",
                "the post of director of {s} is filled by {v}",
            ),
        ),
        Attribute(
            "ticket",
            ValueKind.PRICE,
            ("What does a ticket for the {s} cost?", "How much is a ticket for the {s}?"),
            (
                "a ticket for {s} costs {v}",
                "{s} charges {v} for a ticket",
                "the price of a ticket for {s} is {v}",
                "visitors to {s} pay {v} for a ticket",
            ),
        ),
        Attribute(
            "rooms",
            ValueKind.NUMBER,
            ("How many rooms does the {s} have?", "How many rooms are there in the {s}?"),
            (
                "{s} has {v} rooms",
                "there are {v} rooms in {s}",
                "the number of rooms in {s} is {v}",
                "the displays of {s} fill {v} rooms",
            ),
        ),
        Attribute(
            "facade",
            ValueKind.MATERIAL,
            ("What is the front of the {s} made of?", "Which material covers the front of the {s}?"),
            (
                "the front of {s} is made of {v}",
                "{v} covers the front of {s}",
                "{s} has a front of {v}",
                "the material on the front of {s} is {v}",
            ),
        ),
    ),
    fillers=(
        "Coats and bags can be left in the hall.",
        "School classes fill {s} on most weekdays.",
        "Guided walks start on the hour and are free of charge.",
    ),
)

_ITEM = SubjectKind(
    name="catalogue",
    names=("{stem} Chair", "{stem} Lamp", "{stem} Desk", "{stem} Shelf", "{stem} Bench", "{stem} Cabinet"),
    noun="the item",
    attributes=(
        Attribute(
            "price",
            ValueKind.PRICE,
            ("What is the price of the {s}?", "How much does the {s} cost?"),
            (
                "the price of {s} is {v}",
                "{s} costs {v}",
                "{s} is sold at a price of {v}",
                "buyers pay {v} for {s}",
            ),
        ),
        Attribute(
            "delivery",
            ValueKind.PRICE,
            ("What does delivery of the {s} cost?", "How much is the delivery charge for the {s}?"),
            (
                "delivery of {s} costs {v}",
                "the delivery charge for {s} is {v}",
                "{s} is delivered for a charge of {v}",
                "a delivery charge of {v} applies to {s}",
            ),
        ),
        Attribute(
            "material",
            ValueKind.MATERIAL,
            ("What is the frame of the {s} made of?", "Which material is used for the frame of the {s}?"),
            (
                "the frame of {s} is made of {v}",
                "{s} has a frame of {v}",
                "{v} is used for the frame of {s}",
                "the material of the frame of {s} is {v}",
            ),
        ),
        Attribute(
            "colour",
            ValueKind.COLOUR,
            ("What colour is the {s}?", "In which colour does the {s} come?"),
            (
                "the colour of {s} is {v}",
                "{s} comes in {v}",
                "{s} is sold in the colour {v}",
                "{v} is the colour in which {s} comes",
            ),
        ),
        Attribute(
            "designer",
            ValueKind.PERSON,
            ("Who designed the {s}?", "Who is the designer of the {s}?"),
            (
                "{s} was designed by {v}",
                "the designer of {s} is {v}",
                "{v} designed {s}",
                "the design of {s} is by {v}",
            ),
        ),
        Attribute(
            "supplier",
            ValueKind.COMPANY,
            ("Which company supplies the {s}?", "Who is the supplier of the {s}?"),
            (
                "{s} is supplied by {v}",
                "the supplier of {s} is {v}",
                "{v} supplies {s}",
                "the company that supplies {s} is {v}",
            ),
        ),
    ),
    fillers=(
        "Assembly takes a few minutes and needs no special skill.",
        "Customers who bought {s} often come back for more.",
        "Returns are accepted if the wrapping is intact.",
    ),
)

_BRIDGE = SubjectKind(
    name="bridge",
    names=("{stem} Bridge", "{stem} Viaduct", "{stem} Footbridge", "{stem} Aqueduct", "{stem} Crossing"),
    noun="the structure",
    attributes=(
        Attribute(
            "completed",
            ValueKind.YEAR,
            ("In which year was the {s} completed?", "When was the {s} completed?"),
            (
                "{s} was completed in {v}",
                "work on {s} was completed in {v}",
                "the completion of {s} came in {v}",
                "builders completed {s} in {v}",
            ),
        ),
        Attribute(
            "engineer",
            ValueKind.PERSON,
            ("Who was the chief engineer of the {s}?", "Which chief engineer built the {s}?"),
            (
                "the chief engineer of {s} was {v}",
                "{v} built {s} as chief engineer",
                "{s} was built under its chief engineer, {v}",
                "the plans for {s} came from the chief engineer, {v}",
            ),
        ),
        Attribute(
            "material",
            ValueKind.MATERIAL,
            ("What are the piers of the {s} made of?", "Which material are the piers of the {s} made of?"),
            (
                "the piers of {s} are made of {v}",
                "{s} rests on piers of {v}",
                "{v} was used for the piers of {s}",
                "the material of the piers of {s} is {v}",
            ),
        ),
        Attribute(
            "arches",
            ValueKind.NUMBER,
            ("How many arches does the {s} have?", "How many arches are there in the {s}?"),
            (
                "{s} has {v} arches",
                "there are {v} arches in {s}",
                "the number of arches of {s} is {v}",
                "{s} crosses the valley on {v} arches",
            ),
        ),
        Attribute(
            "lamps",
            ValueKind.NUMBER,
            ("How many lamps light the {s}?", "How many lamps are there on the {s}?"),
            (
                "{v} lamps light {s}",
                "there are {v} lamps on {s}",
                "{s} is lit by {v} lamps",
                "the number of lamps on {s} is {v}",
            ),
        ),
    ),
    fillers=(
        "Cyclists are asked to dismount when the wind is strong.",
        "Anglers gather below {s} at dawn.",
        "The view is best shortly before sunset.",
    ),
)

_CLINIC = SubjectKind(
    name="clinic",
    names=("{stem} Day Clinic", "{stem} Eye Clinic", "{stem} Heart Clinic", "{stem} Skin Clinic", "{stem} Sleep Clinic"),
    noun="the clinic",
    attributes=(
        Attribute(
            "physician",
            ValueKind.PERSON,
            ("Who is the head physician of the {s}?", "Who leads the {s} as head physician?"),
            (
                "the head physician of {s} is {v}",
                "{v} leads {s} as head physician",
                "{s} has {v} as its head physician",
                "the post of head physician at {s} is held by {v}",
            ),
        ),
        Attribute(
            "nurse",
            ValueKind.PERSON,
            ("Who is the matron of the {s}?", "Who serves as matron at the {s}?"),
            (
                "the matron of {s} is {v}",
                "{v} serves as matron at {s}",
                "{s} has {v} as its matron",
                "nurses at {s} report to the matron, {v}",
            ),
        ),
        Attribute(
            "beds",
            ValueKind.NUMBER,
            ("How many beds does the {s} have?", "How many beds are there at the {s}?"),
            (
                "{s} has {v} beds",
                "there are {v} beds at {s}",
                "the number of beds at {s} is {v}",
                "{s} can offer patients {v} beds",
            ),
        ),
        Attribute(
            "sedative",
            ValueKind.DOSAGE,
            ("What starting dose of sedative does the {s} give?", "Which starting dose of sedative is given at the {s}?"),
            (
                "the starting dose of sedative given at {s} is {v}",
                "{s} gives a starting dose of {v} of sedative",
                "patients at {s} get {v} of sedative as a starting dose",
                "a starting dose of {v} of sedative is given at {s}",
            ),
        ),
        Attribute(
            "uniforms",
            ValueKind.COLOUR,
            ("What colour are the uniforms at the {s}?", "Which colour do the uniforms at the {s} have?"),
            (
                "the uniforms at {s} are {v}",
                "staff at {s} wear {v} uniforms",
                "the colour of the uniforms at {s} is {v}",
                "uniforms at {s} have the colour {v}",
            ),
        ),
    ),
    fillers=(
        "Visitors are welcome in the afternoon and should wash their hands.",
        "The garden behind {s} is used for quiet walks.",
        "Notes are kept on paper and copied at the end of the week.",
    ),
)

_EXPEDITION = SubjectKind(
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

KINDS = (_TOWN, _FIRM, _POLICY, _DRUG, _SHIP, _MUSEUM, _ITEM, _BRIDGE, _CLINIC, _EXPEDITION)
"""All kinds of subjects; question `i` takes one by turns."""
