"""Makes special_casing.inc: code points whose upper or title case has more than one, or a title case of its own.

Run with Python 3.11 (Unicode 14) from this folder: python special_casing.py
"""

import pathlib


def spell(text):
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"'


def main():
    lines = []
    for code_point in range(0x110000):
        if 0xD800 <= code_point < 0xE000:
            continue
        letter = chr(code_point)
        upper, title = letter.upper(), letter.title()
        if len(upper) > 1 or len(title) > 1 or upper != title:
            lines.append(f"{{0x{code_point:04x}, {spell(upper)}, {spell(title)}}},\n")
    path = pathlib.Path(__file__).with_suffix(".inc")
    path.write_text("// Made by special_casing.py.\n" + "".join(lines))


if __name__ == "__main__":
    main()
