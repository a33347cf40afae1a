"""Things that are made, which a question can be about."""

from data_gen.world.vocabulary import Attribute, SubjectKind, ValueKind

DRUG = SubjectKind(
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

SHIP = SubjectKind(
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

ITEM = SubjectKind(
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
