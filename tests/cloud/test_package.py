"""--package: the tar file of packages/build.sh goes along, to a machine whose driver runs its CUDA."""
import os
import subprocess

from cloud import Story


class Packages(Story):
    def package(self, *libraries, folder="lib"):
        """A tar file in the form of packages/tarball.sh, with these files in lib/ or, as cmake --install, lib/hark/."""
        root = self.folder / "hark-0.1.0-linux-x86_64-cuda13.0"
        root.mkdir()
        subprocess.run(["tar", "-C", root, "--strip-components=1", "-xf", os.environ["HARK_CLOUD_PACKAGE"]],
                       check=True)
        for library in libraries:
            library.rename(root / folder / library.name)
        subprocess.run(["tar", "-C", self.folder, "-czf", f"{root}.tar.gz", root.name], check=True)
        return f"{root}.tar.gz"

    def library(self, cublas):
        """A CUDA library that needs this cuBLASLt, which is made too."""
        needed, made = self.folder / cublas, self.folder / "libhark-cuda.so"
        for words in (["-Wl,-soname," + cublas, "-o", needed],
                      ["-Wl,--no-as-needed", needed, "-Wl,-rpath,$ORIGIN", "-o", made]):
            subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-x", "none", *words], check=True)
        return made, needed

    def transcribe_with(self, package, **more):
        return self.hark("run", "-o", self.out, self.folder / "recordings", "--type", "gpu_1x_a10", "--package", package,
                         "--", "--model", "demo", "--threads", "1", "--device", "cpu", **more)

    def sent(self):
        return list((self.folder / "machines").glob("*/home/hark/package*"))

    def test_a_tarball_with_cuda_goes_along(self):
        self.begin()
        self.recordings("hat.wav")
        said = self.transcribe_with(self.package(*self.library("libcublasLt.so.13")))
        self.assertIn("the package needs CUDA 13, a driver of version 580 or newer", said)
        self.expect_transcripts(1)
        self.expect_end(1)

    def test_an_old_driver_is_refused_before_the_upload(self):
        self.begin(cuda="12.8")
        self.recordings("hat.wav")
        said = self.transcribe_with(self.package(*self.library("libcublasLt.so.13")), status=1)
        self.assertIn("its driver runs CUDA 12, and the package needs CUDA 13, a driver of version 580 or newer", said)
        self.assertEqual(self.sent(), [])
        self.expect_end(1)

    def test_a_newer_driver_runs_an_older_cuda(self):
        self.begin(cuda="13.0")
        self.recordings("hat.wav")
        said = self.transcribe_with(self.package(*self.library("libcublasLt.so.12")))
        self.assertIn("a driver of version 525 or newer", said)
        self.expect_transcripts(1)
        self.expect_end(1)

    def test_a_cuda_library_without_cublas_is_refused(self):
        self.begin(cuda="99.0")
        self.recordings("hat.wav")
        said = self.transcribe_with(self.package(self.library("libcublasLt.so.99")[0], folder="lib/hark"), status=1)
        self.assertIn("the package does not run there: ", said)
        self.assertIn("libcublasLt.so.99 => not found", said)
        self.expect_transcripts(0)
        self.expect_end(1)
