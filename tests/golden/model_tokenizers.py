"""Makes tests/golden/model_tokenizers/: a tiny tokenizer of each family's pipeline, and what the libraries make of text.

    python tests/golden/model_tokenizers.py [--fuzz CHARACTERS OUT_DIR [--train FILE TOKENS]] [--only FAMILY]

Needs tokenizers 0.22, transformers 4.57, sentencepiece 0.2 and gguf 0.19. The vocabularies are trained on the text of
this repository. FAMILY.json has a tokenizer.json, tokenizer_config.json's values, and ids; FAMILY.gguf is its twin, and
FAMILY.model the sentencepiece model that it was converted from. Of a long text the number of ids and a hash are kept;
with --fuzz that text has CHARACTERS characters or a few more, and nothing is written but OUT_DIR. --only makes one
family's files: the others are of the text that the repository had when they were made. --train takes the lines of FILE
in place of that text, for vocabularies of TOKENS tokens.
"""
import io
import json
import pathlib
import random
import struct
import sys
import tempfile

import gguf
import sentencepiece
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.convert_slow_tokenizer import convert_slow_tokenizer

from bpe import BROKEN, ROOT, TEXTS, random_texts
from gpt_tokenize import MIXED, fnv, generated, summary

OUT = ROOT / "tests" / "golden" / "model_tokenizers"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD = r"[^\r\n\p{L}\p{N}]?"
LLAMA3 = CONTRACTIONS + r"|" + LEAD + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (LEAD + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?|" + LEAD + UPPER + "+" + LOWER + "*" + CONTRACTIONS +
         r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL)
TEKKEN = GPT4O.replace(CONTRACTIONS + "?", "").replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + TAIL]
CASED_LETTERS = (  # as DeepSeek V2's file has them
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373"
    "\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481"
    "\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B"
    "\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B"
    "\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB"
    "\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128"
    "\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4"
    "\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF"
    "\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3"
    "\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF"
    "\U0001E900-\U0001E943")
DEEPSEEK_LLM = ["[\r\n]", r"\s?[" + CASED_LETTERS + "]+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$",
                "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"]
SPACES = ["\u2581", "  ", "\t", "\n\n", "\u00a0", "\u3000 ", "\u2028", "\x00", "\x7f", "\u200d", "\ufeff", "'ſ", "K's", "I'LL", "DON'T",
          "e\u0301", "한글", "ﬁ", "①", "Ⅷ", "x²", "१२३४", "1234567", "camelCaseWORDs", "日本語テキスト", "!?.../\n", "<0x41>", "\u2581\u2581"]


def argument(name, place=1):
    return sys.argv[sys.argv.index(name) + place] if name in sys.argv else None


def vocabulary_size(otherwise):
    return int(argument("--train", 2) or otherwise)


def training_text():
    if argument("--train"):
        return pathlib.Path(argument("--train")).read_text().splitlines() + [text for text in TEXTS if text.strip() and len(text) < 200] * 2
    lines = [line for page in ("README.md", "docs/cli.md", "docs/formats.md")
             for line in (ROOT / page).read_text().splitlines() if line.strip()]
    return lines[:1200] + [text for text in TEXTS if text.strip() and len(text) < 200] * 2


def special(*names, **flags):
    return [AddedToken(name, special=True, normalized=False, **flags) for name in names]


def plain(*names, **flags):
    return [AddedToken(name, special=False, **{"normalized": False, **flags}) for name in names]


def added_token(content):
    """As tokenizer_config.json has one."""
    return {"__type": "AddedToken", "content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}


def byte_level(steps, size=None, normalizer=None, ignore_merges=False, added=(), bos=None, without=""):
    """GPT-2's kind: steps, then bytes spelled in an alphabet, of which `without` is no token."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size or vocabulary_size(480), initial_alphabet=sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(without)), show_progress=False)
    tokenizer.train_from_iterator(training_text(), trainer)
    if ignore_merges:  # tokens that no merge makes
        root = json.loads(tokenizer.to_str())
        for word in ("Ġwhisperer", "Wort", "123", "ĠGrößen"[:-4]):
            root["model"]["vocab"].setdefault(word, len(root["model"]["vocab"]))
        tokenizer = Tokenizer.from_str(json.dumps(root))
    tokens = [token for token in added]
    tokenizer.add_tokens(tokens)
    tokenizer.add_special_tokens([token for token in tokens if token.special])
    steps = [processors.ByteLevel(trim_offsets=False)]
    if bos:
        steps.append(processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]))
    tokenizer.post_processor = processors.Sequence(steps) if bos else steps[0]
    return tokenizer


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated", False)


def bytes_step(use_regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def train_sentencepiece(name, **settings):
    path, model = OUT / f"{name}.model", io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(training_text()), model_writer=model, minloglevel=2, num_threads=1,
        **{"model_type": "bpe", "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True,
           "character_coverage": 0.98, "vocab_size": vocabulary_size(600), "split_digits": True, "allow_whitespace_only_pieces": True, **settings})
    path.write_bytes(model.getvalue())
    return path


def converted(kind, path, **settings):
    return set_added(convert_slow_tokenizer(kind(str(path), **settings)), special("<unk>"))


def set_added(tokenizer, added):
    tokenizer.add_tokens([token for token in added if not token.special])
    tokenizer.add_special_tokens([token for token in added if token.special])
    return tokenizer


def odd_tokenizers():
    """Parts and flags that the families do not all use."""
    yield "odd_flags", set_added(byte_level(
        [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(False), bytes_step(True)], 300,
        normalizers.Sequence([normalizers.Strip(True, True), normalizers.Lowercase(), normalizers.NFKC(), normalizers.Replace(Regex("a+"), "a")])),
        [AddedToken("word", single_word=True, normalized=True), AddedToken("<l>", lstrip=True, special=True, normalized=False),
         AddedToken("<r>", rstrip=True, special=True, normalized=True), AddedToken("ＡB", normalized=True), AddedToken("the", normalized=False),
         AddedToken("then", normalized=False), AddedToken("ß", normalized=False)])
    for name, behavior, invert in [("odd_next", "merged_with_next", False), ("odd_previous", "merged_with_previous", True),
                                   ("odd_removed", "removed", False), ("odd_contiguous", "contiguous", False)]:
        yield name, byte_level([pre_tokenizers.Split(Regex(r"[a-z]|\s"), behavior, invert), pre_tokenizers.Split("e", behavior, invert),
                                pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)], 280)
    vocab = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "▁": 4, "▁a": 5, "<0xE2>": 6, "<0x82>": 7, "<0xAC>": 8, "t": 9, "h": 10, "th": 11, "e": 12, "the": 13}
    merges = [("a", "b"), ("▁", "a"), ("t", "h"), ("th", "e")]
    for name, fuse in [("odd_unknown", False), ("odd_fused", True)]:
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=fuse, byte_fallback=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always" if fuse else "first", split=fuse)
        tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always") if fuse else decoders.Sequence([decoders.Strip("t", 1, 0), decoders.ByteFallback()])
        yield name, set_added(tokenizer, special("<s>"))
    bare = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    yield "odd_bare", bare
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    unigram.train_from_iterator(training_text(), trainers.UnigramTrainer(vocab_size=400, unk_token="<unk>", special_tokens=["<unk>", "</s>"], show_progress=False))
    unigram.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    yield "unigram", unigram


def families():
    """Name, tokenizer, tokenizer_config.json's values, GGUF's tokenizer.ggml.pre or None."""
    yield "llama3", byte_level([split(LLAMA3), bytes_step()], ignore_merges=True, bos="<|begin_of_text|>", added=special(
        "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")), {
            "bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "tokenizer_class": "PreTrainedTokenizerFast"}, "llama-bpe"
    yield "qwen2", byte_level([split(QWEN2), bytes_step()], normalizer=normalizers.NFC(), added=special(
        "<|endoftext|>", "<|im_start|>", "<|im_end|>") + plain("<tool_call>", "</tool_call>", "<|fim_prefix|>")), {
            "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "tokenizer_class": "Qwen2Tokenizer"}, "qwen2"
    yield "smollm2", byte_level([pre_tokenizers.Digits(True), bytes_step(True)], added=special(
        "<|endoftext|>", "<|im_start|>", "<|im_end|>")), {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}, "smollm"
    yield "smollm3", byte_level([split(LLAMA3), bytes_step()], added=special("<|im_start|>", "<|im_end|>") + plain("<think>", "</think>")), {
        "eos_token": "<|im_end|>"}, "smaug-bpe"
    yield "olmo2", byte_level([split(LLAMA3), bytes_step()], added=special("<|endoftext|>", "<|pad|>") + plain(
        "|||IP_ADDRESS|||", "  ", "   ", "    ", normalized=True)), {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}, "dbrx"
    yield "granite", byte_level([pre_tokenizers.Digits(True), bytes_step(True)], added=special(
        "<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>")), {"bos_token": "<|end_of_text|>", "eos_token": "<|end_of_text|>"}, "refact"
    yield "gpt_oss", byte_level([split(GPT4O), bytes_step()], added=special(
        "<|startoftext|>", "<|return|>", "<|start|>", "<|message|>", "<|channel|>", "<|end|>")), {
            "bos_token": "<|startoftext|>", "eos_token": "<|return|>"}, "gpt-4o"
    yield "tekken", byte_level([split(TEKKEN), bytes_step()], ignore_merges=True, bos="<s>", added=special("<unk>", "<s>", "</s>", "[INST]", "[/INST]")), {
        "bos_token": "<s>", "eos_token": "</s>"}, "tekken"
    yield "deepseek", byte_level([split(pattern) for pattern in DEEPSEEK] + [bytes_step()], bos="<｜begin▁of▁sentence｜>", added=special(
        "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>") + plain("<｜User｜>", "<｜Assistant｜>", "<think>")), {
            "bos_token": added_token("<｜begin▁of▁sentence｜>"), "eos_token": added_token("<｜end▁of▁sentence｜>"),
            "add_bos_token": True, "tokenizer_class": "LlamaTokenizerFast"}, "deepseek-v3"
    # Bytes that no text has are no tokens there, and letters that spell them are added tokens.
    yield "deepseek_llm", byte_level([split(pattern) for pattern in DEEPSEEK_LLM] + [pre_tokenizers.Digits(True), bytes_step()],
                                     normalizer=normalizers.Sequence([]), bos="<｜begin▁of▁sentence｜>", without="ø÷À", added=special(
        "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>") + plain("ø", "÷", "À", "<｜fim▁hole｜>", normalized=True)), {
            "bos_token": added_token("<｜begin▁of▁sentence｜>"), "eos_token": added_token("<｜end▁of▁sentence｜>"),
            "add_bos_token": True, "tokenizer_class": "LlamaTokenizerFast"}, "deepseek-llm"
    yield "phi4", byte_level([split(LLAMA3), bytes_step()], added=special(
        "<|endoftext|>", "<|im_start|>", "<|im_sep|>", "<|im_end|>", lstrip=True, rstrip=True)), {"eos_token": "<|im_end|>"}, None
    llama = train_sentencepiece("llama2")
    config = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True, "tokenizer_class": "LlamaTokenizer"}
    yield "llama2", converted(transformers.LlamaTokenizer, llama, legacy=True), config, "llama"
    yield "mistral", converted(transformers.LlamaTokenizer, llama, legacy=False), {**config, "add_bos_token": False}, None
    yield "phi3", set_added(converted(transformers.LlamaTokenizer, llama, legacy=True), special(
        "<|user|>", "<|end|>", "<|assistant|>", rstrip=True)), {**config, "eos_token": "<|end|>"}, None
    gemma = train_sentencepiece("gemma", add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, control_symbols="<end_of_turn>,<start_of_turn>",
                                pad_piece="<pad>", bos_piece="<bos>", eos_piece="<eos>",
                                user_defined_symbols=["\n", "\n\n", "\n\n\n", "▁▁", "▁▁▁", "▁▁▁▁", "\t", "<table>", "</table>"])
    yield "gemma", converted(transformers.GemmaTokenizer, gemma), {
        "bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>", "tokenizer_class": "GemmaTokenizer"}, "llama"
    for name, tokenizer in odd_tokenizers():
        yield name, tokenizer, {}, None


def write_gguf(name, tokenizer, config, pre, directory):
    """The twin: tokens in the order of their ids, with types, merges or scores."""
    root = json.loads(tokenizer.to_str())
    vocab, added = root["model"]["vocab"], {token["id"]: token for token in root["added_tokens"]}
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    tokens, types = [f"[PAD{i}]" for i in range(size)], [gguf.TokenType.UNUSED] * size
    for token, i in vocab.items():
        tokens[i], types[i] = token, gguf.TokenType.NORMAL
    for i, token in added.items():
        tokens[i], types[i] = token["content"], gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
    writer = gguf.GGUFWriter(directory / f"{name}.gguf", "llama")
    writer.add_tokenizer_model("llama" if pre == "llama" else "gpt2")
    if pre == "llama":
        model = sentencepiece.SentencePieceProcessor(str(OUT / f"{name}.model"))
        kinds = [("unknown", gguf.TokenType.UNKNOWN), ("control", gguf.TokenType.CONTROL), ("byte", gguf.TokenType.BYTE), ("unused", gguf.TokenType.UNUSED)]
        for i in range(size):
            for kind, number in kinds:
                if getattr(model, f"is_{kind}")(i):
                    types[i] = number
            if types[i] == gguf.TokenType.USER_DEFINED:
                tokens[i] = tokens[i].replace("▁", " ")
        writer.add_token_scores([model.get_score(i) for i in range(size)])
        writer.add_add_space_prefix(name != "gemma")
    else:
        writer.add_tokenizer_pre(pre)
        writer.add_token_merges(["%s %s" % tuple(merge) for merge in root["model"]["merges"]])
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    for key, add in [("bos_token", writer.add_bos_token_id), ("eos_token", writer.add_eos_token_id)]:
        token = config.get(key)
        token = token["content"] if isinstance(token, dict) else token
        if token:
            add(tokenizer.token_to_id(token))
    if name.startswith("deepseek"):
        writer.add_add_bos_token(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def special_texts(tokenizer, rng):
    """Texts with added tokens in them, at awkward places."""
    names = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    around = ["", " ", "  ", "a", "word", "\n", " the ", "▁", "x<", "|>", "é", "thethen", "ab"]
    if not names:
        return ["the ab", "€ a€b", "z the z"]
    return ["".join(rng.choice(around) + rng.choice(names) for _ in range(rng.randint(1, 4))) + rng.choice(around) for _ in range(25)]


def encode(tokenizer, text, parse, add):
    tokenizer.encode_special_tokens = not parse
    return tokenizer.encode(text, add_special_tokens=add).ids


def configured(tokenizer, config):
    """As transformers' Llama and Gemma classes change what is put around a text."""
    if config.get("tokenizer_class", "")[:5] not in ("Llama", "Gemma"):
        return tokenizer
    with tempfile.TemporaryDirectory() as directory:
        tokenizer.save(f"{directory}/tokenizer.json")
        pathlib.Path(directory, "tokenizer_config.json").write_text(json.dumps(config))
        kind = transformers.GemmaTokenizerFast if config["tokenizer_class"].startswith("Gemma") else transformers.LlamaTokenizerFast
        return Tokenizer.from_str(kind.from_pretrained(directory).backend_tokenizer.to_str())


def golden(name, tokenizer, config, texts, long_text):
    rng = random.Random(name)
    own = special_texts(tokenizer, rng)
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    used = sorted(tokenizer.get_vocab(with_added_tokens=True).values())
    around = configured(Tokenizer.from_str(tokenizer.to_str()), config)
    decoded = []
    for _ in range(40):
        ids = [rng.choice(used) for _ in range(rng.randint(1, 12))]
        if "<0xE2>" in tokenizer.get_vocab() and rng.random() < 0.5:
            ids = [tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in rng.choice(["é€", "x"]).encode()[: rng.randint(1, 5)]] + ids
            ids = [i for i in ids if i is not None]
        decoded.append([ids, tokenizer.decode(ids, skip_special_tokens=True), tokenizer.decode(ids, skip_special_tokens=False)])
    return {"tokenizer": json.loads(tokenizer.to_str()), "config": config, "vocab_size": size, "own_texts": own,
            "plain": [encode(tokenizer, text, False, False) for text in texts], "parsed": [encode(tokenizer, text, True, False) for text in own],
            "as_text": [encode(tokenizer, text, False, False) for text in own], "around": encode(around, "a text", True, True),
            "decoded": decoded, "long": summary(encode(tokenizer, long_text, False, False))}


def pieces_of_long_text():
    return [p.encode() for p in MIXED + SPACES + [t for t in TEXTS + list(random_texts()) if 0 < len(t) <= 40]]


def bytes_of_characters(pieces, seed, characters):
    """The bytes of the generated text that has at least this many characters."""
    size = characters
    while (have := len(generated(pieces, seed, size).decode())) < characters:
        size = size * characters // have + 100
    return size


def add_family(only, common, made):
    """Puts a family's files next to those of the others, which stay."""
    directory = ROOT / "tests" / "golden" / "model_tokenizers"
    older = json.loads((directory / "common.json").read_text())
    if any(older[key] != common[key] for key in common if key not in ("families", "sentencepiece")):
        sys.exit("common.json: texts or libraries are others now; make all families")
    for path in made.glob(f"{only}.*"):
        (directory / path.name).write_bytes(path.read_bytes())
    write_common(directory, {**older, "families": common["families"]})


def write_common(directory, common):
    (directory / "common.json").write_text(json.dumps(common, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    fuzz, only = int(argument("--fuzz") or 0), argument("--only")
    global OUT
    OUT = directory = pathlib.Path(argument("--fuzz", 2) or (tempfile.mkdtemp() if only else OUT))
    OUT.mkdir(parents=True, exist_ok=True)
    texts = TEXTS + list(random_texts()) + SPACES + [data.decode(errors="replace") for data in BROKEN]
    pieces = pieces_of_long_text()
    seed, size = (7, bytes_of_characters(pieces, 7, fuzz)) if fuzz else (1, 60_000)
    long_text = generated(pieces, seed, size).decode()
    common = {"made_with": f"tokenizers {tokenizers.__version__}, transformers {transformers.__version__}, sentencepiece {sentencepiece.__version__}",
              "texts": texts, "pieces": [p.hex() for p in pieces], "seed": seed, "bytes": size, "text_hash": fnv(long_text.encode()),
              "families": [], "sentencepiece": {}}
    for name, tokenizer, config, pre in families():
        if only and fuzz and name != only:
            continue
        common["families"].append({"name": name, "gguf": pre is not None})
        if only not in (None, name):
            continue
        made = golden(name, tokenizer, config, texts, long_text)
        (directory / f"{name}.json").write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n")
        if pre:
            write_gguf(name, tokenizer, config, pre, directory)
        print(name, made["vocab_size"], made["long"]["count"])
    if only:
        return write_common(directory, common) if fuzz else add_family(only, common, directory)
    train_sentencepiece("unigram", model_type="unigram", normalization_rule_name="nmt_nfkc", byte_fallback=False, remove_extra_whitespaces=True, vocab_size=500)
    sp = {name: sentencepiece.SentencePieceProcessor(str(OUT / f"{name}.model")) for name in ("llama2", "gemma", "unigram")}
    common["sentencepiece"] = {name: {"plain": [model.encode(text) for text in texts], "decoded": [model.decode(model.encode(text)) for text in texts],
                                      "long": summary(model.encode(long_text))}
                               for name, model in sp.items()}
    write_common(directory, common)


if __name__ == "__main__":
    main()
