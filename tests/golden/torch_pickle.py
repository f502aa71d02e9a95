"""Writes checkpoints as torch.save does with pickle_protocol 2, 4 and 5: the archive, and in it Python's pickle of the
same objects. Needs no torch: modules of its name have the globals that torch.save's pickles refer to.

    torch_pickle.py OUT_DIR     tests/fuzz/corpus/torch_file: seeds of fuzz_torch_file, read by torch_file_test too

Source: pytorch torch/serialization.py, _save, and torch/_tensor.py, __reduce_ex__."""
import collections
import io
import pathlib
import pickle
import struct
import sys
import types
import zipfile

torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules |= {"torch": torch, "torch._utils": utils}
torch._utils = utils


class HalfStorage:
    pass


class FloatStorage:
    pass


def _rebuild_tensor_v2(*args):
    pass


def _rebuild_parameter(*args):
    pass


for storage in (HalfStorage, FloatStorage):
    storage.__module__ = "torch"
    setattr(torch, storage.__name__, storage)
for function in (_rebuild_tensor_v2, _rebuild_parameter):
    function.__module__ = "torch._utils"
    setattr(utils, function.__name__, function)


class Storage:
    def __init__(self, kind, key, count):
        self.id = ("storage", kind, key, "cpu", count)


class Tensor:
    def __init__(self, storage, offset, size, stride):
        self.args = (storage, offset, size, stride, False, collections.OrderedDict())

    def __reduce_ex__(self, protocol):
        return _rebuild_tensor_v2, self.args


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (self.tensor, True, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        return value.id if isinstance(value, Storage) else None


def write(path, protocol):
    halves, floats = Storage(HalfStorage, "0", 12), Storage(FloatStorage, "1", 1)
    state = collections.OrderedDict([
        ("a", Tensor(halves, 6, (2, 3), (3, 1))), ("b", Tensor(halves, 0, (6,), (1,))),
        ("ä" * 150, Parameter(Tensor(floats, 0, (), ())))])  # longer than SHORT_BINUNICODE has
    state._metadata = collections.OrderedDict([("", {"version": 1})])
    dims = {"n_mels": 80, "n_vocab": 51865, "negative": -5, "large": 1 << 40}
    saved = {"dims": dims, "model_state_dict": state, "epoch": 2.5, "optimizer": None, "best": True}
    if protocol >= 4:  # protocol 2 writes bytes as a call of _codecs.encode
        saved["hash"], saved["log"] = b"\x00" * 20, b"x" * 300
    pickled = io.BytesIO()
    Pickler(pickled, protocol).dump(saved)
    members = {"data.pkl": pickled.getvalue(), "byteorder": b"little", "data/0": bytes(range(24)),
               "data/1": struct.pack("<f", 0.5), "version": b"3\n"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo("x/" + name)
            # An extra field places the data at a multiple of 64 bytes.
            padding = -(archive.fp.tell() + 30 + len(info.filename) + 4) % 64
            info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            archive.writestr(info, data)


for protocol in (2, 4, 5):
    write(pathlib.Path(sys.argv[1]) / f"protocol-{protocol}.pt", protocol)
