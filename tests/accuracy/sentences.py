"""Sentences for held_out.sh, put together by a small grammar rather than taken from a text.

    python3 tests/accuracy/sentences.py    # prints the plan

A line is a recording, its fields between tabs: voice, speed (as in samples/make.sh), and for each
of its sentences the seconds of silence behind it and the text. The words are those of novels, news
and spoken commands, which the demo model was trained on; the sentences come from the rules below
and a fixed seed, none twice, and none that stands in samples/transcripts.tsv.

A name in capitals stands for one of the alternatives of its rule, drawn anew each time it appears.
Only random.random() is used, whose sequence Python promises to keep for a seed.
"""

import pathlib
import random
import re

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SEED = 20250625
RECORDINGS = 40
WORDS = 5000
SHORTEST, LONGEST = 45, 205  # words of a recording, before scaling to WORDS in all

# Voice and speed: words a minute for espeak-ng, a factor of the duration for flite; 0 its default.
VOICES = (
    ("flite:slt", "0"),
    ("espeak:en-us", "0"),
    ("flite:rms", "0"),
    ("espeak:en", "150"),
    ("flite:kal16", "0"),
    ("espeak:en-gb-scotland", "0"),
    ("flite:awb", "0"),
    ("espeak:en-us", "190"),
    ("flite:slt", "1.15"),
    ("espeak:en-gb-x-rp", "160"),
    ("flite:rms", "0.9"),
    ("espeak:en", "0"),
    ("flite:awb", "1.1"),
    ("espeak:en-us", "140"),
)

SENTENCES = ("TALE", "SPEECH", "NEWS", "COMMAND", "QUESTION")
RULES = {
    "SENTENCE": "TALE/TALE/TALE/TALE/SPEECH/SPEECH/NEWS/NEWS/NEWS/COMMAND/COMMAND/QUESTION",
    "TALE": """
        PERSON WALKED PLACE and DID.
        WHEN, PERSON WALKED PLACE.
        PERSON DID, and then PERSON DID.
        PERSON, who had DONE, DID before THEOTHER could answer.
        The THING WHERE was STATE, and PERSON DID.
        There was a LOOK THING WHERE, but nobody had DONE.
        WHEN PERSON DID, though the THING was STATE.
        It was STATE WHERE, and the THING was STATE.
        PERSON had DONE, but the THING was still STATE.
        No one knew why PERSON had DONE.
        For COUNT days PERSON waited WHERE, and at last PERSON DID.
        The LOOK THING that PERSON had brought was STATE.
        As soon as PERSON had DONE, the THING became STATE.
        PERSON was STATE, because THEOTHER had DONE.""",
    "SPEECH": """
        I have never seen such a LOOK THING, said PERSON.
        You must not leave the THING WHERE, PERSON replied.
        Where is the THING, asked PERSON, and why is it STATE?
        If you are STATE, said PERSON, come and sit WHERE.
        I believe that THEOTHER must have DONE, cried PERSON.
        We shall go PLACE together, said PERSON, when the THING is STATE.
        Tell me, PERSON asked, who has DONE?
        My dear friend, said PERSON, you are STATE tonight.""",
    "NEWS": """
        GROUP SAY that PRODUCT will be COMPARED this YEAR.
        GROUP in AREA have PLANNED to CHANGE PRODUCT.
        The price of PRODUCT has gone up by COUNT per cent in AREA.
        PRODUCT from AREA will be COMPARED than expected, GROUP SAY.
        More than COUNT thousand people in AREA are waiting for PRODUCT.
        A new report SAYS that GROUP need more PRODUCT.
        GROUP met in AREA on DAY to talk about PRODUCT.
        Heavy rain in AREA has been bad for PRODUCT and good for PRODUCT.
        The government will spend COUNT million dollars on PRODUCT in AREA.
        On DAY GROUP told the minister that PRODUCT must be COMPARED.
        After COUNT months of drought, GROUP in AREA can sell PRODUCT again.""",
    "COMMAND": """
        Please SWITCH the DEVICE in the ROOM at CLOCK.
        Set the DEVICE in the ROOM for CLOCK on DAY.
        Tell me the news from AREA at CLOCK.
        Add COUNT ITEM and some ITEM to my list.
        Call my RELATIVE on DAY at CLOCK.
        Play the song about the THING in the ROOM.
        Send a message to my RELATIVE, and then SWITCH the DEVICE.
        Remember that my RELATIVE comes PLACE on DAY.""",
    "QUESTION": """
        Did PERSON really DO WHERE?
        What will PERSON do with the LOOK THING?
        How many ITEM are there in the ROOM?
        Can you tell me whether the THING WHERE is STATE?
        Why did the RELATIVE of PERSON DO?
        Who put the THING WHERE on DAY?""",
    "PERSON": """the old captain/the young woman/the doctor/the farmer/the Count/her brother/
        his sister/the king/a stranger/the poor boy/the tall soldier/my father/our teacher/
        the little girl/the professor/the lady of the house/one of the children/the old man/
        his mother/the driver/
        the quiet girl/John/Lucy/the prince/Alice/the lion/the servant/the young lawyer/Dorothy""",
    "THEOTHER": """the others/his wife/the guard/the woman/her friend/the dog/the people/
        the young man/the man in the black hat/the other men/our neighbours""",
    "WALKED": """walked/went/ran/came back/hurried/rode/was sent/walked slowly/went quietly/
        turned and went/came down/travelled""",
    "PLACE": """to the river/into the garden/across the bridge/up the hill/to the station/
        through the forest/towards the castle/down to the beach/into the dark kitchen/to the church/
        along the road/to the hospital/out of the room/to the market/back to the city/
        over the mountain/into the cold water/up to the second floor""",
    "WHERE": """by the window/in the garden/under the tree/near the door/behind the house/
        on the table/beside the fire/at the end of the street/in the middle of the night/
        on the other side of the river/in the next room/at the bottom of the box/
        between two stones/on the ship/above the clouds/at the top of the stairs/in the snow""",
    "WHEN": """in the morning/after a long silence/at that moment/the next day/late in the evening/
        a few minutes later/during the storm/before the sun was up/on the third night/in the spring/
        when the bell rang/while the others were asleep/many years ago/in the early hours""",
    "DID": """opened the THING/looked at the LOOK THING/said nothing/began to laugh/lost the THING/
        fell asleep/took the THING away/shook hands with THEOTHER/sat down to read/
        put the THING WHERE/wrote a LOOK letter/gave THEOTHER the THING/waited for the answer/
        heard a LOOK voice/closed the LOOK door/found a LOOK THING WHERE/ate some bread/
        listened to THEOTHER/carried the THING PLACE""",
    "DONE": """seen the THING/broken the LOOK THING/forgotten the name of THEOTHER/
        paid for the THING/left the THING WHERE/slept WHERE/asked for help/taken the wrong road/
        lost the key/hidden the THING WHERE/heard THEOTHER/come home too late/read the LOOK letter/
        sold the THING/spoken to THEOTHER/gone PLACE""",
    "DO": """open the THING/sell the LOOK THING/leave the THING behind/walk PLACE/hear THEOTHER/
        hide the key/forget the THING/stay WHERE/sleep WHERE/write that letter/ask for help""",
    "THING": """box/lamp/letter/horse/boat/book/ring/window/picture/chair/bag/coat/clock/knife/
        basket/map/gun/paper/bottle/wheel/hat/bell/cup/door/carriage/candle/bird/gold/stone""",
    "LOOK": """small/large/simple/strange/beautiful/heavy/broken/white/black/green/little/dirty/new/
        silver/wonderful/terrible/golden/common/long/narrow/red/bright""",
    "STATE": """cold/quiet/very dark/too heavy/ready/full of water/wet/gone/afraid/almost empty/
        tired/quite safe/better than before/of no use/in great danger/as white as snow/closed/
        warm and dry/not far away/lost/free/ill""",
    "COUNT": """two/three/four/five/six/seven/eight/nine/ten/eleven/twelve/fifteen/twenty/thirty/
        forty/fifty/sixty""",
    "GROUP": """farmers/scientists/researchers/the workers/doctors/three companies/the growers/
        local people/teachers/the leaders of the party/experts/the police/small companies""",
    "SAYS": "says/shows/suggests",
    "SAY": "say/believe/think",
    "PRODUCT": """wheat/sugar/cotton/fresh fruit/wool/coffee/milk/clean water/beef/sheep/fish/
        oil and gas/public transport/electricity/new houses/rice/cattle/vegetables/the railway/
        wine/health research/live exports""",
    "COMPARED": """cheaper/better/safer/harder to find/more important/much stronger/lower/higher/
        easier to sell""",
    "YEAR": "year/month/week/summer/winter/season/spring",
    "AREA": """Queensland/the north/Victoria/western Australia/New South Wales/the city/Europe/
        the south/America/Tasmania/China/the country/Washington/England/the islands""",
    "PLANNED": "decided/promised/agreed/started/refused/tried",
    "CHANGE": "buy/sell/stop selling/test/study/pay for/grow more/look after",
    "DAY": "Monday/Tuesday/Wednesday/Thursday/Friday/Saturday/Sunday",
    "SWITCH": "turn on/turn off/start/stop/check/turn down",
    "DEVICE": "light/radio/fan/heating/alarm/television/camera/music/timer",
    "ROOM": "kitchen/bedroom/living room/hall/garden/office/bathroom",
    "CLOCK": """seven in the morning/eight o'clock/half past nine/noon/ten in the evening/
        five in the afternoon/a quarter past six""",
    "ITEM": "eggs/apples/potatoes/bottles/cups/books/chairs/boxes",
    "RELATIVE": "mother/brother/sister/father/doctor/daughter/uncle/friend/wife/husband",
}


def alternatives(symbol, text):
    """A rule's alternatives: a line each for whole sentences, between / for all else."""
    parts = text.splitlines() if symbol in SENTENCES else text.split("/")
    return [" ".join(part.split()) for part in parts if part.strip()]


GRAMMAR = {symbol: alternatives(symbol, text) for symbol, text in RULES.items()}
SYMBOL = re.compile(r"\b(?:" + "|".join(RULES) + r")\b")


def expanded(generator, symbol):
    """One of the texts that the symbol stands for."""
    options = GRAMMAR[symbol]
    text = options[int(generator.random() * len(options))]
    return SYMBOL.sub(lambda match: expanded(generator, match[0]), text)


def sentence(generator):
    text = expanded(generator, "SENTENCE")
    return text[0].upper() + text[1:]


def plan():
    """Rows of voice, speed, [(pause, sentence), ...]."""
    generator = random.Random(SEED)
    samples = (REPOSITORY / "samples/transcripts.tsv").read_text(encoding="utf-8")
    shares = [SHORTEST + (LONGEST - SHORTEST) * generator.random() for _ in range(RECORDINGS)]
    seen, rows, words, goal = set(), [], 0, 0.0
    for index, share in enumerate(shares):
        goal += share * WORDS / sum(shares)
        spoken = []
        while words < goal:
            text = sentence(generator)
            if text in seen or text in samples:
                continue
            seen.add(text)
            words += len(text.split())
            spoken.append((f"{0.2 + 1.8 * generator.random():.2f}", text))
        rows.append((*VOICES[index % len(VOICES)], spoken))
    return rows


def main():
    for voice, speed, spoken in plan():
        print(voice, speed, *(field for pair in spoken for field in pair), sep="\t")


if __name__ == "__main__":
    main()
