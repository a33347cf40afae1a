"""Places that a question can be about."""

from data_gen.world.vocabulary import Attribute, SubjectKind, ValueKind

TOWN = SubjectKind(
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

MUSEUM = SubjectKind(
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

BRIDGE = SubjectKind(
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

CLINIC = SubjectKind(
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
