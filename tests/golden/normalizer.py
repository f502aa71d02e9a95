"""Makes tests/golden/normalizer.json: texts through openai-whisper's normalisers.

Run from the repository's root, with openai-whisper 20250625 installed:

    python tests/golden/normalizer.py

Each case: text, and what it becomes by EnglishTextNormalizer, by BasicTextNormalizer as it is
(basic), with remove_diacritics (bare) and with split_letters (letters), and by
EnglishNumberNormalizer in lower case (numbers). `spellings` stands for the table of
EnglishSpellingNormalizer: how many words, and the 64-bit FNV-1a of its sorted lines "WORD SPELLING".
"""
import json
import pathlib
import random
import unicodedata

from whisper.normalizers import BasicTextNormalizer, EnglishTextNormalizer
from whisper.normalizers.english import EnglishNumberNormalizer, EnglishSpellingNormalizer

ROOT = pathlib.Path(__file__).resolve().parents[2]

TEXTS = [
    "", " ", "\n", "Hello, world!", "  two   spaces\tand\u00a0tabs\u3000 ", "A.B.C. and U.S.A.", "e.g. this... and that.",
    # Contractions and titles.
    "I won't, can't, don't, shouldn't've", "Let's go; ain't y'all gonna? I wanna, I gotta, I'ma, imma", "He 's here and they 're there",
    "he'd been, she's been, it'd gone, he's gone, I'd done, she's got, we'd go, I'll, you've, I'm, 't", "woulda coulda shoulda, ma'am",
    "Mr. and Mrs. Smith met Dr. Jones on St. John St.", "Prof. Capt. Gov. Ald. Gen. Sen. Rep. Pres. Rev. Hon. Asst. Assoc. Lt. Col. Jr. Sr. Esq.",
    "the general's rep, the col's gen", "O'Brien's dogs' bones", "rock 'n' roll", "it’s typographic, don’t you’ll", "'twas 'Tis",
    # Fillers and brackets.
    "Um, uh, hmm, mm, mhm, mmm, ummm, uhm", "[Music] hello <noise> (laughs) there", "(a (b) c) d", "() [] <>", "a (unclosed", "b [unclosed <c", "x ) y ] z >",
    "[mixed> (par]en) <x]", "text (one) and (two) [three]",
    # Numbers.
    "1,234,567.89", "1,2,3,4", "one two three", "one hundred and one", "a hundred and one", "two thousand and twenty four", "nineteen eighty four",
    "twenty twenty vision", "ten ten ten", "zero", "oh no", "o o o", "one oh one", "double seven triple oh", "double trouble", "triple nineteen",
    "first second third fourth fifth sixth seventh eighth ninth nineth tenth twelfth twentieth", "the twenty first century", "thirty-third", "ones and twos and sixes",
    "hundreds of thousands", "a million millions", "two point five", "point five", "point", "what's the point of it", "three point one four one five nine",
    "1.2.3.4", "one ninety two point one sixty eight point one point one", "3 point", "two and a half", "3 and a half", "and a half", "half and a half", "million and a half",
    "one and a half and two and a half million", "minus five degrees", "negative", "plus one", "plus two and minus", "positive feedback", "minus and five",
    "five dollars", "five dollars and five cents", "$5 and 50 cents", "$2 and ¢7", "€3 ¢05", "£1.50", "$0.05", "$0.5", "0.36 dollars", "$1", "$1s", "1 1s one ones 1st 1.1",
    "ten pounds fifty", "twenty euros", "a cent", "cents per dollar", "fifty percent", "fifty per cent", "fifty per person", "per cent", "percent", "100%", "100 %", "5% 6 %7",
    "$", "$ 5", "5 $", "-5", "+5", "--5", "a-5", "1960s", "10th", "10 th", "10 s", "7 st", "b52s", "4x4", "mp3", "covid19", "7up", "h2o2",
    "one thousand two hundred thirty four hundred", "ninety nine decillion", "one decillion million", "123456789012345678901234567890 thousand and one",
    "two hundred thousand million billion trillion quadrillion quintillion sextillion septillion octillion nonillion",
    "3.0 million", "3.14159 hundred", "2.5 thousands", "0.0001 thousandth", "007", "007 hundred", "0", "0 0 1", "0 million", "zero million", "zero point zero",
    "five twenty four", "five twenty fourth", "twenty zero", "twenty zeroth", "twenty eleven", "twenty eleventh", "hundred eleven", "hundred eleventh", "two twenty twenties",
    "seven eleven", "eleven seven", "nine one one", "one hundred hundred", "four score and seven", "two dozen", "march 3rd, 2021 at 5:30 p.m.", "555-0123", "(555) 867-5309", "1/2 and 3/4", "½ cup ¾", "x² + y³ = z⁴",
    "٣ ٤ ٥", "१२३ thousand", "一二三", "３ million", "٣.٥ million", "five ٣", "1,٣",
    # Symbols at the edges.
    ".5", "5.", "a.5", ".a", "... 5 ...", "$a", "€ 5.", "%", "%5", "50%off", "¢", "¢5", "£.50", "a%b", "$.50", "$0x36", "#1 & @2 * 3 = 4 ~ 5 ^ 6 | 7 \\ 8 / 9",
    # Spellings.
    "the colour of the theatre's aeroplane", "organise organised organisation realise analyse", "travelled traveller travelling cancelled", "centre metre litre", "defence licence practise",
    "archaeology archaeologist", "mum mmm mhm", "flyer / flier", "grey tyre kerb plough cheque", "catalogue dialogue programme", "Manoeuvre Diarrhoea Oesophagus foetus",
    # Other scripts and marks.
    "Ça va? L'été à Noël, garçon", "Größe, Straße, ẞ, Übermut", "Łódź, Øre, Ærø, œuvre, Œuvre, Đồng, Þór, ð, þ, đ", "İstanbul ISPARTA ıǰ", "ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ. ΑΣ’Α Σ'",
    "Привет, МИР! Ёлка й", "Ελληνικά: τι κάνεις;", "שָׁלוֹם עֲלֵיכֶם", "مَرْحَبًا بِالعالَم، ١٢٣", "नमस्ते दुनिया।", "বাংলা ভাষা", "ภาษาไทยสบายดี", "こんにちは、世界！ガギグゲゴ", "ｶﾞｷﾞｸﾞ ﾊﾟ", "カ\u3099キ\u3099",
    "你好，世界！《书》", "대한민국 한글 각", "\u1112\u1161\u11ab\u1100\u1173\u11af", "Tiếng Việt có dấu", "ﬁne ﬂow ﬀ ﬃ", "Ⅷ ⅳ ① ㈱ ㎏ ℃ №", "e\u0301 a\u0316\u0301 q\u0307\u0323", "\u0301alone \u200bzero\u200dwidth\ufeff",
    "😀 emoji 👍🏽 👩‍👩‍👧 🇩🇪", "naïve café résumé coöperate", "\u1c80\u10d0\u1c90 ᏣᎳᎩ ꭰ", "ǅ ǈ ǲ ŉ ǰ ΐ", "Å Å Å \u212b", "a\x1cb\x1dc\x1ed\x1fe\x85f\u2028g\u2029h", "a\x00b\x01c", "𝐀𝟏𝟐𝟑 𝔘𝔫𝔦", "_under_score_ __init__", "a\r\nb\r\n\r\nc",
    "«guillemets» „low“ ‘single’ “double” – — ―", "¿Qué? ¡Sí!", "x\u0600y \u06dd5", "Mr\u0301 st\u0308", "won't\u0301", "1\u03012", "hmm_ _um", "uh2 uh-huh", "st1 1st sta",
]


def random_texts():
    rng = random.Random(20250625)
    numbers = sorted(EnglishNumberNormalizer().words)
    others = ["3", "14", "$5", "2.5", "€52.40", "¢7", "100", "0", "00", "cat", "the", "$", "%", "5%", "-7", "+", "a", "half", "and a half", "1,000", "20th", "5 th", "b747"]
    for _ in range(220):
        yield " ".join(rng.choice(numbers if rng.random() < 0.8 else others) for _ in range(rng.randint(2, 9)))
    pieces = ["'s", "'d", "n't", " '", "been", " gone", "mr", "dr.", "St ", ".", ",", "1", "2", "$", "%", " ", " ", "(", ")", "[", "]", "<", ">", "um", "hmm", "é", "ß", "Σ", "I", "one", " two", "-", "\t", "can", "colour", " and ", "and a half"]
    for _ in range(120):
        yield "".join(rng.choice(pieces) for _ in range(rng.randint(2, 25)))
    # Code points that this Python's Unicode knows, from every block.
    known = [c for c in range(0x20, 0x30000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    for _ in range(80):
        at = rng.randrange(len(known) - 300)
        yield "".join(chr(known[at + rng.randrange(300)]) for _ in range(12))


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def main():
    english, basic = EnglishTextNormalizer(), BasicTextNormalizer()
    bare, letters = BasicTextNormalizer(remove_diacritics=True), BasicTextNormalizer(split_letters=True)
    number, spelling = EnglishNumberNormalizer(), EnglishSpellingNormalizer()
    cases = [
        {"text": t, "english": english(t), "basic": basic(t), "bare": bare(t), "letters": letters(t), "numbers": number(t.lower())}
        for t in TEXTS + list(random_texts())
    ]
    table = sorted(f"{word} {american}\n" for word, american in spelling.mapping.items() if " " not in word)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    head = {"count": len(table), "fnv1a": f"{fnv1a(''.join(table).encode()):016x}"}
    out = ROOT / "tests" / "golden" / "normalizer.json"
    out.write_text('{"made_with":"openai-whisper 20250625",\n"spellings":%s,\n"cases":[\n%s\n]}\n' % (json.dumps(head), lines))


if __name__ == "__main__":
    main()
