"""All kinds of subjects, in the order in which questions take them."""

from data_gen.world.places import BRIDGE, CLINIC, MUSEUM, TOWN
from data_gen.world.things import DRUG, ITEM, SHIP
from data_gen.world.undertakings import EXPEDITION, FIRM, POLICY

KINDS = (TOWN, FIRM, POLICY, DRUG, SHIP, MUSEUM, ITEM, BRIDGE, CLINIC, EXPEDITION)
