#include "audio/libav/libav.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "audio/byte_order.h"
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
// Of a run that other threads may decode: samples of all channels, and packets.
constexpr int64_t kRunSamples = 1 << 20;
constexpr size_t kRunPackets = 1024;
constexpr int64_t kRunSeconds = 15, kRunBytes = 8 << 20;
constexpr size_t kRuns = 5;  // read ahead, the one that is decoded included
// Runs in a row that were decoded without result: then the recording's own thread decodes the rest.
constexpr int kMostUnusable = 8;

// Samples that the decoder drops before a packet's and, at the end, after them.
std::pair<uint32_t, uint32_t> skipped_samples(const AVPacket& packet) {
    size_t bytes = 0;
    const uint8_t* data = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, &bytes);
    if (!data || bytes < 8) return {0, 0};
    return {little_endian(data, 4), little_endian(data + 4, 4)};
}

class LibavDecoder : public Decoder {
  public:
    LibavDecoder(Input& input, int track, Helpers* helpers);
    bool next(AudioBlock& block) override;
    Loss loss() const override;

  private:
    void begin_coverage();
    int64_t length_of(const AVPacket& packet) const;
    void read_run();
    bool next_run();
    void decode_packet();
    void take_run(AudioBlock& block);
    void begin_packet(const AVPacket* packet);
    void count_result(const AVPacket* packet, const Decoded& results, size_t i);
    void count_frame(const Decoded::Frame& frame);
    void end_packet(const Decoded::Packet& packet);
    double found_end() const;

    Input& input_;
    double declared_;  // seconds, by our own look at the header; 0 if unknown
    LibavContainer container_;
    std::shared_ptr<const CodecSetup> setup_;
    Helpers* helpers_ = nullptr;  // null: each run is one packet, decoded here

    std::deque<std::shared_ptr<PacketRun>> runs_;  // the front one is decoded
    bool all_read_ = false;
    size_t at_ = 0;  // the next packet of the front run
    int unusable_ = 0;
    std::unique_ptr<PacketCodec> codec_;  // after the packet before `at_`
    Decoded kept_;             // of the packets with which the next run's pre-roll is compared
    Decoded::Frame format_{};  // the newest frame
    int64_t length_ = 0;       // samples per channel since the format has changed

    Decoded own_;       // of the newest packet, if it was decoded here
    size_t frame_ = 0;  // the next of its frames
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
    block.part.reset();
    while (frame_ == own_.frames.size()) {
        if (!own_.packets.empty()) end_packet(own_.packets[0]);
        own_.clear();
        frame_ = 0;
        if (draining_) {
            container_.rethrow();
            require(bad_packets_ == 0 || coverage_.decoded() > 0, input_.name(),
                    ": nothing of it can be decoded");
            ended_ = true;
            return false;
        }
        const bool is_first = runs_.empty() || at_ == runs_.front()->packets.size();
        if (is_first && next_run()) {
            take_run(block);
            return true;
        }
        decode_packet();
    }
    own_.read(frame_, block);
    count_frame(own_.frames[frame_++]);
    return true;
}

// Samples per channel that a packet should give.
int64_t LibavDecoder::length_of(const AVPacket& packet) const {
    const AVCodecParameters& parameters = setup_->parameters();
    const double seconds = seconds_of(packet.duration, container_.stream());
    const int64_t length = parameters.frame_size > 0
                               ? parameters.frame_size
                               : std::llround(seconds * parameters.sample_rate);
    return length - skipped_samples(packet).first;
}

void LibavDecoder::read_run() {
    auto run = std::make_shared<PacketRun>(setup_);
    const int channels = std::max(1, setup_->parameters().ch_layout.nb_channels);
    const size_t most = helpers_ ? kRunPackets : 1;
    const int64_t samples =
        std::min(kRunSamples / channels, kRunSeconds * int64_t{setup_->parameters().sample_rate});
    int64_t bytes = 0;
    while (!all_read_ && run->packets.size() < most && bytes < kRunBytes &&
           run->expected < samples) {
        std::shared_ptr<AVPacket> packet = make_packet();
        all_read_ = !container_.next(*packet);
        if (!all_read_) {
            run->expected += length_of(*packet);
            bytes += packet->size;
        }
        run->packets.push_back(all_read_ ? nullptr : std::move(packet));
    }
    if (helpers_ && !runs_.empty() && run->choose_pre_roll(runs_.back()->packets)) {
        run->position = length_;
        for (size_t i = at_ > 0 ? 1 : 0; i < runs_.size(); ++i) run->position += runs_[i]->expected;
        for (const SharedPacket& packet : run->compared()) run->position -= length_of(*packet);
        run->sink = helpers_->make_sink(run->position);
        runs_.push_back(run);
        helpers_->offer(run);
    } else {
        runs_.push_back(run);
    }
}

// Continues with the next run. Returns whether it has been decoded apart.
bool LibavDecoder::next_run() {
    const size_t most = (helpers_ ? kRuns : 1) + (runs_.empty() ? 0 : 1);
    while (!all_read_ && runs_.size() < most) read_run();
    if (at_ > 0) runs_.pop_front();
    at_ = 0;
    PacketRun& run = *runs_.front();
    // While another thread decodes it, this one decodes those that no thread has begun.
    for (size_t i = 1; i < runs_.size() && run.is_begun(); ++i) runs_[i]->decode();
    const bool has_results = !run.take();
    const bool is_usable = has_results && run.is_usable(kept_, length_ - kept_.length());
    if (has_results) unusable_ = is_usable ? 0 : unusable_ + 1;
    if (unusable_ == kMostUnusable) helpers_ = nullptr;
    kept_.clear();
    return is_usable;
}

// Decodes the next packet, or what the decoder still has at the track's end.
void LibavDecoder::decode_packet() {
    const AVPacket* const packet = runs_.front()->packets[at_].get();
    begin_packet(packet);
    codec_->decode(packet, own_);
    count_result(packet, own_, 0);
}

// Counts what has been decoded apart, as if it were decoded now.
void LibavDecoder::take_run(AudioBlock& block) {
    PacketRun& run = *runs_.front();
    const Decoded& results = run.results;
    for (size_t i = run.compared().size(); i < results.packets.size(); ++i) {
        const AVPacket* const packet = run.packets[at_].get();
        begin_packet(packet);
        count_result(packet, results, i);
        const Decoded::Packet& result = results.packets[i];
        for (size_t f = 0; f < result.frames; ++f)
            count_frame(results.frames[result.first_frame + f]);
        end_packet(result);
    }
    codec_ = run.take_codec();
    block.rate = format_.rate;
    block.channels = format_.channels;
    block.layout = format_.layout;
    block.part = run.sink;
}

void LibavDecoder::begin_packet(const AVPacket* packet) {
    draining_ = packet == nullptr;
    if (draining_) return;
    ++packets_;
    const AVStream& stream = container_.stream();
    packet_at_ = seconds_of(packet->pts, stream);
    packet_seconds_ = packet->duration > 0 ? seconds_of(packet->duration, stream) : longest_frame_;
    if (packet->flags & AV_PKT_FLAG_CORRUPT) coverage_.add_damage(packet_at_, packet_seconds_);
}

// Counts the result of packet `at_`, which is the i-th of `results`.
void LibavDecoder::count_result(const AVPacket* packet, const Decoded& results, size_t i) {
    ++at_;
    if (!packet) return;
    // What the next run's pre-roll is compared with.
    if (runs_.size() > 1 && at_ + runs_[1]->compared().size() > runs_.front()->packets.size())
        kept_.append(results, i, true);
    const Decoded::Packet& result = results.packets[i];
    if (result.refused) {
        ++bad_packets_;
        coverage_.add_damage(packet_at_, packet_seconds_);
    }
    const double padding = skipped_samples(*packet).second;
    coverage_.set_padding(result.sample_rate > 0 ? padding / result.sample_rate : 0);
}

void LibavDecoder::count_frame(const Decoded::Frame& frame) {
    require(frame.rate >= kMinRate && frame.rate <= kMaxRate && frame.channels >= 1 &&
                frame.channels <= kMaxChannels,
            input_.name(), ": unlikely format (got ", frame.channels, " channels at ", frame.rate,
            " Hz); the file may be damaged");
    const double length = static_cast<double>(frame.length) / frame.rate;
    longest_frame_ = std::max(longest_frame_, length);
    coverage_.add_frame(seconds_of(frame.pts, container_.stream()), length);
    const bool changes = frame.rate != format_.rate || frame.channels != format_.channels ||
                         frame.layout != format_.layout;
    length_ = (changes ? 0 : length_) + frame.length;
    format_ = frame;
}

void LibavDecoder::end_packet(const Decoded::Packet& packet) {
    if (packet.failure) std::rethrow_exception(packet.failure);
    if (!packet.failed) return;
    ++bad_packets_;  // a damaged packet: the decoder continues with the next
    coverage_.add_damage(packet_at_, packet_seconds_);
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

Loss LibavDecoder::loss() const {
    const double stated = declared_ > 0 ? declared_
                                        : stated_end(container_.format(), container_.track(),
                                                     container_.stream_ends(), longest_frame_);
    Loss loss = coverage_.loss(ended_ ? stated : 0, found_end());
    const auto add = [&](const std::string& more) {
        loss.text += (loss.text.empty() ? "" : "; ") + more;
        loss.is_end = false;
    };
    if (draining_ && container_.broken() != 0)
        add(concat("cannot be read after ", coverage_.end(),
                   " s: ", libav_error(container_.broken())));
    if (bad_packets_ > 2 && bad_packets_ * 10 > packets_)
        add(concat("damaged: ", bad_packets_, " of ", packets_, " packets cannot be decoded"));
    return loss;
}

}  // namespace
}  // namespace hark

HARK_EXPORT int hark_av_abi() { return hark::kLibavAbi; }
HARK_EXPORT hark::Decoder* hark_av_open(hark::Input& input, int track, hark::Helpers* helpers) {
    return new hark::LibavDecoder(input, track, helpers);
}
