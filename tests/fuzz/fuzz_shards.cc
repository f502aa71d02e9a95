// What hark-shard reads: manifests of NeMo, Lhotse's lines, a folder of Kaldi, plans and results.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "core/files/files.h"
#include "fuzz/attempt.h"
#include "fuzz/input_folder.h"
#include "fuzz/target.h"
#include "hub/digest.h"
#include "operations/shards/inputs.h"
#include "operations/shards/plan.h"
#include "operations/shards/result.h"

using namespace hark;
using namespace hark::fuzz;
using namespace hark::shards;

namespace {

constexpr size_t kTarBlock = 512, kTarSum = 148, kTarMagic = 257;

// Gives each header of a tar its sum, or no mutated one would be read any further.
void fix_sums(std::string& tar) {
    for (size_t at = 0; at + kTarBlock <= tar.size(); at += kTarBlock) {
        if (tar.compare(at + kTarMagic, 5, "ustar") != 0) continue;
        std::fill_n(tar.begin() + static_cast<std::ptrdiff_t>(at + kTarSum), 8, ' ');
        unsigned sum = 0;
        for (size_t i = at; i < at + kTarBlock; ++i) sum += static_cast<unsigned char>(tar[i]);
        char digits[8];
        std::snprintf(digits, sizeof digits, "%06o", sum);
        tar.replace(at + kTarSum, 7, digits, 7);
    }
}

std::string tar_member(const std::string& name, char type, const std::string& content) {
    std::string header(kTarBlock, '\0');
    char size[12];
    std::snprintf(size, sizeof size, "%011zo", content.size());
    header.replace(0, name.size(), name);
    header.replace(124, 11, size);
    header[156] = type;
    header.replace(kTarMagic, 8, std::string("ustar\00000", 8));
    fix_sums(header);
    std::string padded = content;
    padded.resize((content.size() + kTarBlock - 1) / kTarBlock * kTarBlock);
    return header + padded;
}

std::string done(const std::string& shard_sha256, const std::string& result_sha256) {
    return R"({"shard":"00001","recordings":2,"transcribed":1,"failed":1,"hours":0.4,)"
           R"("failed_hours":0.1,"shard_sha256":")" +
           shard_sha256 + R"(","result_sha256":")" + result_sha256 +
           R"(","job":{"model":"demo","options":[]}})";
}

}  // namespace

static std::vector<std::string> shards_seeds() {
    const auto part = InputFolder::part;
    return {
        part('m', R"({"audio_filepath":"a.wav","duration":2.5,"text":"one","speaker":"s"})"
                  "\n"
                  R"({"audio_filepath":"https://x/b.mp3","id":"b","offset":1.5,"duration":3})"
                  "\n\n"
                  R"({"audio_filepath":"store:c.flac","id":7,"lang":"en","duration":null})"),
        part('l', R"({"id":"r","sources":[{"type":"file","channels":[0],"source":"a.wav"}],)"
                  R"("sampling_rate":16000,"num_samples":16000,"duration":1.0})"
                  "\n"
                  R"({"id":"c","start":0.5,"duration":0.25,"channel":0,"supervisions":[{"id":"s",)"
                  R"("text":"one","speaker":"a","language":"en"}],"recording":{"id":"r","sources":)"
                  R"([{"type":"url","channels":[0],"source":"https://x/a"}],"duration":1.0}})"),
        part('w', "r1 /data/a.wav\nr2 b.wav\n") + part('g', "u1 r1 0.0 1.5\nu2\tr2 1.25 3\n") +
            part('t', "u1 ONE TWO\n") + part('u', "u1 anna\nu2 ben\n"),
        part('w', "r1 /data/a.wav\nr2 sox b.wav - |\n"),
        part('T', tar_member("d/a.flac", '0', "sound") +
                      tar_member("d/a.json", '0', R"({"text":"one","duration":1.5})") +
                      tar_member("x", 'x', "19 path=long/b.wav\n") + tar_member("b.wav", '0', "s") +
                      tar_member("L", 'L', "c.mp3") + tar_member("c", '0', "") +
                      tar_member("c.txt", '\0', "drei\n") + std::string(2 * kTarBlock, '\0')),
        part('p', "name\trecordings\thours\tbytes\tsha256\n00001\t2\t0.500000\t-\t" +
                      std::string(64, 'a') + "\n") +
            part('d', done(std::string(64, 'a'), models::sha256_of_text("{}\n"))) +
            part('r', "{}\n"),
        part('p', "name\trecordings\thours\tbytes\tsha256\n00001\t2\t-\t9\ta\n") +
            part('d', done("a", "b")),
        part('a', "sound")};
}

// An entry is a line of a manifest, from which the same entry comes.
static void check_entries(const std::vector<ManifestEntry>& entries) {
    std::string lines;
    for (const ManifestEntry& entry : entries) lines += entry.line + "\n";
    const std::vector<ManifestEntry> again = parse_manifest(lines, "/elsewhere", "again");
    if (again.size() != entries.size()) std::abort();
    for (size_t i = 0; i < entries.size(); ++i)
        if (again[i].id != entries[i].id || again[i].line != entries[i].line ||
            again[i].audio_filepath != entries[i].audio_filepath ||
            again[i].member_bytes != entries[i].member_bytes ||
            again[i].offset != entries[i].offset || again[i].duration != entries[i].duration)
            std::abort();
    const SizesKnown known = measure(entries);
    attempt([&] {
        size_t done = 0;
        for (const size_t end : cut(entries, known, default_size(known))) {
            if (end <= done) std::abort();
            done = end;
        }
        if (done != entries.size()) std::abort();
    });
}

static int shards_input(const uint8_t* data, size_t size) {
    static InputFolder folder({{'w', "wav.scp"},
                               {'g', "segments"},
                               {'t', "text"},
                               {'u', "utt2spk"},
                               {'m', "manifest.jsonl"},
                               {'l', "cuts.jsonl"},
                               {'T', "samples.tar"},
                               {'p', "shards.tsv"},
                               {'d', "00001.done"},
                               {'r', "00001.jsonl"},
                               {'a', "in/a.WAV"}});
    const std::filesystem::path& path = folder.holding(data, size);
    if (const std::filesystem::path tar = path / "samples.tar"; std::filesystem::exists(tar)) {
        std::string bytes = read_file(tar);
        fix_sums(bytes);
        std::ofstream(tar, std::ios::binary) << bytes;
    }
    for (const auto& [name, format] : {std::pair("", "kaldi"),
                                       {"manifest.jsonl", "nemo"},
                                       {"cuts.jsonl", "lhotse"},
                                       {"samples.tar", "webdataset"},
                                       {"in", "recordings"}}) {
        std::vector<ManifestEntry> entries;
        attempt([&] {
            std::vector<ManifestEntry> read = read_input((path / name).string(), format);
            require_unique_ids(read);
            entries = std::move(read);
        });
        check_entries(entries);
    }
    attempt([&] {
        const std::vector<PlannedShard> plan = read_plan(path);
        Console console("fuzz");
        console.silent = true;
        check_results(path, plan, path, console);
    });
    attempt([&] { read_done(path / "00001.done"); });
    return 0;
}

static const hark::fuzz::Target kShards{"shards", shards_seeds, shards_input};
