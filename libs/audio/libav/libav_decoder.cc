#include "audio/libav/libav.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "audio/coverage.h"
#include "audio/declared_length.h"
#include "audio/libav/libav_container.h"
#include "audio/libav/libav_length.h"
#include "audio/libav/packet_run.h"
#include "core/error.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// Of a run that other threads may decode: samples of all channels (4 MB of floats), and packets.
constexpr double kRunSamples = 1 << 20;
constexpr size_t kRunPackets = 1024;
constexpr size_t kRuns = 5;  // read ahead, the one that is decoded included

class LibavDecoder : public Decoder {
  public:
    LibavDecoder(Input& input, int track, Helpers* helpers);
    bool next(AudioBlock& block) override;
    std::string loss() const override;

  private:
    void begin_coverage();
    void read_run();
    void next_run();
    void decode_packet();
    void begin_packet(const AVPacket& packet);
    void end_packet(const AVPacket& packet);
    void take_frame(AudioBlock& block);
    double found_end() const;

    Input& input_;
    double declared_;  // seconds, by our own look at the header; 0 if unknown
    LibavContainer container_;
    std::shared_ptr<const CodecSetup> setup_;
    Helpers* helpers_ = nullptr;  // null: each run is one packet, decoded here

    std::deque<std::shared_ptr<PacketRun>> runs_;  // the front one is decoded
    bool all_read_ = false;
    Decoded spare_;                       // memory for the next run's results
    size_t at_ = 0;                       // the next packet of the front run
    std::unique_ptr<PacketCodec> codec_;  // after the packet before `at_`
    Decoded kept_;                        // results that the next run's are compared with

    Decoded own_;  // of the newest packet, if it was decoded here
    Decoded* results_ = &own_;
    size_t packet_ = 0, frame_ = 0;  // the newest packet in `results_`, and its next frame
    size_t frames_end_ = 0;
    bool draining_ = false, ended_ = false;
    int64_t packets_ = 0, bad_packets_ = 0;
    double longest_frame_ = 0;  // seconds
    double packet_seconds_ = 0;
    double packet_at_ = kNone;  // timestamp of the newest packet, in seconds
    Coverage coverage_;
};

LibavDecoder::LibavDecoder(Input& input, int track, Helpers* helpers)
    : input_(input), declared_(declared_seconds(input)), container_(input, track) {
    begin_coverage();
    try {
        setup_ = std::make_shared<CodecSetup>(container_.stream(), input_.name());
        codec_ = std::make_unique<PacketCodec>(*setup_);
    } catch (...) {
        container_.rethrow();
        throw;
    }
    // A pipe is decoded while it is read.
    if (input_.seekable() && setup_->is_divisible()) helpers_ = helpers;
}

void LibavDecoder::begin_coverage() {
    const AVFormatContext& format = container_.format();
    if ((format.iformat->flags & AVFMT_GENERIC_INDEX) && !is_container(format, "ogg"))
        coverage_.set_counted();
    const char* const kCounted[] = {"matroska", "flac"};
    for (const char* name : kCounted)
        if (format.nb_streams == 1 && is_container(format, name)) coverage_.begin_at_zero();
}

bool LibavDecoder::next(AudioBlock& block) {
    block.samples.clear();
    while (frame_ == frames_end_) {
        if (packets_ > 0 || draining_) {
            Decoded::Packet& last = results_->packets[packet_];
            if (last.failure) std::rethrow_exception(last.failure);
            // A damaged packet: the decoder continues with the next.
            if (std::exchange(last.failed, false)) {
                ++bad_packets_;
                coverage_.add_damage(packet_at_, packet_seconds_);
            }
        }
        if (draining_) {
            container_.rethrow();
            require(bad_packets_ == 0 || coverage_.decoded() > 0, input_.name(),
                    ": nothing of it can be decoded");
            ended_ = true;
            return false;
        }
        decode_packet();
    }
    take_frame(block);
    return true;
}

void LibavDecoder::take_frame(AudioBlock& block) {
    const Decoded::Frame& frame = results_->frames[frame_];
    block.rate = frame.rate;
    block.channels = frame.channels;
    block.layout = frame.layout;
    require(block.rate >= kMinRate && block.rate <= kMaxRate && block.channels >= 1 &&
                block.channels <= kMaxChannels,
            input_.name(), ": unlikely format (got ", block.channels, " channels at ", block.rate,
            " Hz); the file may be damaged");
    const std::span<const float> samples = results_->samples_of(frame_++);
    block.samples.assign(samples.begin(), samples.end());
    const double length = static_cast<double>(frame.length) / block.rate;
    longest_frame_ = std::max(longest_frame_, length);
    coverage_.add_frame(seconds_of(frame.pts, container_.stream()), length);
}

void LibavDecoder::read_run() {
    const AVCodecParameters& parameters = setup_->parameters();
    const double rate = static_cast<double>(parameters.sample_rate) *  // samples per second
                        parameters.ch_layout.nb_channels;
    auto run = std::make_shared<PacketRun>(setup_);
    double samples = 0;
    const size_t most = helpers_ ? kRunPackets : 1;
    while (!all_read_ && run->packets.size() < most && samples < kRunSamples) {
        std::shared_ptr<AVPacket> packet = make_packet();
        all_read_ = !container_.next(*packet);
        samples += seconds_of(packet->duration, container_.stream()) * rate;
        run->packets.push_back(all_read_ ? nullptr : std::move(packet));
    }
    run->results = std::exchange(spare_, {});
    run->results.clear();
    runs_.push_back(run);
    if (helpers_ && runs_.size() > 1 && run->choose_lead_in(runs_[runs_.size() - 2]->packets))
        helpers_->offer(run);
}

// Continues with the next run. The one before it is there until its results have been compared.
void LibavDecoder::next_run() {
    const size_t most = (helpers_ ? kRuns : 1) + (runs_.empty() ? 0 : 1);
    while (!all_read_ && runs_.size() < most) read_run();
    if (at_ > 0) {
        spare_ = std::move(runs_.front()->results);
        runs_.pop_front();
    }
    at_ = 0;
    PacketRun& run = *runs_.front();
    const bool is_decoded = run.is_decoded(kept_);
    if (is_decoded) codec_ = run.take_codec();
    results_ = is_decoded ? &run.results : &own_;
    kept_.clear();
}

// Takes the results of the next packet, or of the track's end.
void LibavDecoder::decode_packet() {
    if (runs_.empty() || at_ == runs_.front()->packets.size()) next_run();
    const PacketRun& run = *runs_.front();
    const AVPacket* const packet = run.packets[at_].get();
    if (packet) begin_packet(*packet);
    packet_ = results_ == &own_ ? 0 : run.compared() + at_;
    if (results_ == &own_) {
        own_.clear();
        codec_->decode(packet, own_);
    }
    frame_ = results_->packets[packet_].first_frame;
    frames_end_ = frame_ + results_->packets[packet_].frames;
    ++at_;
    draining_ = packet == nullptr;
    if (packet) end_packet(*packet);
}

void LibavDecoder::end_packet(const AVPacket& packet) {
    // What the next run's lead-in is compared with.
    if (runs_.size() > 1 && at_ + runs_[1]->compared() > runs_.front()->packets.size())
        kept_.append(*results_, packet_);
    const Decoded::Packet& result = results_->packets[packet_];
    if (result.refused) {
        ++bad_packets_;
        coverage_.add_damage(packet_at_, packet_seconds_);
    }
    size_t bytes = 0;
    const uint8_t* skip = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, &bytes);
    uint32_t padding = 0;  // samples that the decoder drops at the end, little-endian
    for (size_t i = 8; skip && bytes >= 8 && i-- > 4;) padding = padding << 8 | skip[i];
    coverage_.set_padding(result.sample_rate > 0 ? static_cast<double>(padding) / result.sample_rate
                                                 : 0);
}

void LibavDecoder::begin_packet(const AVPacket& packet) {
    ++packets_;
    const AVStream& stream = container_.stream();
    packet_at_ = seconds_of(packet.pts, stream);
    packet_seconds_ = packet.duration > 0 ? seconds_of(packet.duration, stream) : longest_frame_;
    if (packet.flags & AV_PKT_FLAG_CORRUPT) coverage_.add_damage(packet_at_, packet_seconds_);
}

// The end that is compared with it: of this stream, or of any if the length is that of all.
double LibavDecoder::found_end() const {
    const bool of_stream = states_each_stream(container_.format(), container_.track());
    // WMA's decoder gives a frame the timestamp of the packet after it.
    const AVCodecID codec = setup_->parameters().codec_id;
    const bool early = codec == AV_CODEC_ID_WMAV1 || codec == AV_CODEC_ID_WMAV2;
    const double end = coverage_.end() - (early ? longest_frame_ : 0);
    const std::vector<double>& all = container_.stream_ends();
    if (of_stream || all.empty()) return end;
    return std::max(end, *std::max_element(all.begin(), all.end()));
}

std::string LibavDecoder::loss() const {
    const double stated = declared_ > 0 ? declared_
                                        : stated_end(container_.format(), container_.track(),
                                                     container_.stream_ends(), longest_frame_);
    std::string text = coverage_.loss(ended_ ? stated : 0, found_end());
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
    if (draining_ && container_.broken() != 0)
        add(concat("cannot be read after ", coverage_.end(),
                   " s: ", libav_error(container_.broken())));
    if (bad_packets_ > 2 && bad_packets_ * 10 > packets_)
        add(concat("damaged: ", bad_packets_, " of ", packets_, " packets cannot be decoded"));
    return text;
}

}  // namespace
}  // namespace hark

HARK_EXPORT int hark_av_abi() { return hark::kLibavAbi; }
HARK_EXPORT hark::Decoder* hark_av_open(hark::Input& input, int track, hark::Helpers* helpers) {
    return new hark::LibavDecoder(input, track, helpers);
}
