#include "gpt/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/profile/profile.h"
#include "gpt/train/block_muon.h"
#include "gpt/train/train_memory.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

// The sum of f32 losses, in their order.
double sum_of(const Tensor& losses) {
    const float* values = losses.as<float>();
    return std::accumulate(values, values + losses.size(), 0.0);
}

}  // namespace

Trainer::Trainer(Context& ctx, ParallelMesh& mesh, const DecoderConfig& config,
                 const TrainOptions& options, Dtype matrices, const TokenWindows& windows,
                 int32_t separator)
    : ctx_(ctx),
      mesh_(mesh),
      config_(config),
      options_(options),
      shard_(config, mesh.tensor()),
      layout_(shard_.local()),
      memory_(ctx.arena.source()),
      sharded_(!mesh.all().alone() && options.optimizer.optimizer == "adamw"),
      // Not with tensor parallelism: collectives of two groups may wait for each other for ever.
      overlap_(sharded_ && mesh.tensor().alone() && options.accumulate == 1),
      order_(windows, static_cast<uint64_t>(options.seed)),
      reader_(ctx, order_, options.batch, options.length, separator, mesh.data().rank(),
              mesh.data().size()),
      val_rows_(separator) {
    const int64_t size = layout_.size(), padded = padded_size(layout_, mesh.data());
    const int64_t moments = sharded_ ? padded / mesh.data().size() : size;
    for (Tensor* all : {&parameters_, &gradients_, &m_, &v_}) {
        const bool moment = all == &m_ || all == &v_;
        *all = memory_.tensor(Dtype::f32, {moment ? moments : padded});
        set_zero(ctx, *all);
    }
    if (matrices != Dtype::f32) matrices_ = memory_.tensor(matrices, {layout_.decayed()});
    weights_ = layout_.views(parameters(), matrices_);
    weights_.ropes = upload_ropes(ctx, memory_, config_);
    d_weights_ = layout_.views(gradients_.slice(0, size));
    const int64_t rows = options.batch * options.length;
    losses_ = memory_.tensor(Dtype::f32, {rows});
    clip_ = memory_.tensor(Dtype::f32, {2});
    buckets_ = sharded_ ? zero_buckets(ctx, layout_, mesh.data())
                        : std::vector<ZeroBucket>{{{0, size}, {0, size}}};
    norms_ = memory_.tensor(Dtype::f32, {mesh.all().size() * std::ssize(buckets_) + 1});
    for (Tensor* ids : batch_.all()) *ids = memory_.tensor(Dtype::i32, {rows});
    if (sharded_) side_.emplace(ctx);
    if (ctx.on_cuda()) recorded_.emplace(scratch_.emplace(ctx));
    // One block for all activations: blocks that grow with the requests leave gaps.
    Arena& arena = ctx.on_cuda() ? scratch_->context().arena : ctx.arena;
    const Arena::Scope scope(arena);
    arena.tensor(Dtype::u8, {train_memory(ctx, mesh, config, options, matrices).activations});
}

void Trainer::round_matrices(int64_t step) {
    if (matrices_)
        stochastic_round(ctx_, matrices_, parameters_.slice(0, layout_.decayed()),
                         static_cast<uint64_t>(step));
}

void Trainer::add_gradients(uint64_t first) {
    Batch host = reader_.read(first);
    for (size_t i = 0; i < batch_.all().size(); ++i)
        copy_to_device(ctx_, *batch_.all()[i], *host.all()[i]);
    if (recorded_)
        (*recorded_)([&](Context& ctx) { compute(ctx); });
    else
        compute(ctx_);
}

void Trainer::compute(Context& ctx) {
    const auto targets = static_cast<float>(options_.sequences_per_step() * options_.length);
    const auto done = [&](int64_t block) {
        if (!overlap_) return;
        for (size_t i = 0; i < buckets_.size(); ++i)
            if (buckets_[i].block == block) sum_over_ranks(ctx, i);
    };
    compute_gradients(ctx, mesh_.tensor(), config_, weights_, d_weights_, batch_,
                      options_.recompute_level(), 1 / targets, losses_, done);
    done(ZeroBucket::kLast);
    if (side_) side_->join(ctx);
}

// The sums of the gradients of this rank's part of a bucket, and their norm.
void Trainer::sum_over_ranks(Context& ctx, size_t bucket) {
    const Range &full = buckets_[bucket].full, &local = buckets_[bucket].local;
    const int64_t at = mesh_.all().rank() * std::ssize(buckets_) + static_cast<int64_t>(bucket);
    Communicator& tensor = mesh_.tensor();
    side_->run(ctx, [&](Context& side) {
        const auto of = [&](const Range& range) {
            return gradients_.slice(range.begin, range.end);
        };
        mesh_.data().reduce_scatter(side, of(full));
        // Each tensor rank has the tables' gradients of its share of the rows. Gradients of
        // unsliced vectors are equal, but data groups may have summed them in different orders.
        tensor.all_reduce(side, of(local.within({0, layout_.tables()})));
        tensor.broadcast(side, of(local.within({layout_.sliced(), gradients_.size()})), 0);
        // What all of a tensor group have counts once.
        const Tensor counted =
            of(tensor.first() ? local : local.within({layout_.tables(), layout_.sliced()}));
        // clip_by_norm() writes a factor after the norm. The next norm overwrites it; norms_ has
        // room for the last one.
        if (counted.size() > 0)
            clip_by_norm(side, norms_.slice(at, at + 2), counted, 0);
        else
            set_zero(side, norms_.slice(at, at + 1));
    });
}

double Trainer::sum_of_losses() {
    const Scratch scratch(ctx_);
    return sum_of(to_host(ctx_, losses_));
}

StepResult Trainer::step(int64_t step) {
    const ProfileSpan span("step");
    const OptimizerOptions& o = options_.optimizer;
    const auto targets = static_cast<double>(options_.sequences_per_step() * options_.length);
    set_zero(ctx_, gradients_);
    StepResult result;
    const auto first = static_cast<uint64_t>((step - 1) * options_.sequences_per_step());
    const auto at_once = static_cast<uint64_t>(options_.batch * mesh_.data().size());
    for (int64_t part = 0; part < options_.accumulate; ++part) {
        if (part > 0) result.loss += sum_of_losses() / targets;
        add_gradients(first + static_cast<uint64_t>(part) * at_once);
    }
    clip();
    result.rate = o.rate_of(step, options_.steps);
    const bool immediate = o.skip_outliers <= 0;  // else the norm is checked before the update
    if (immediate) update(step, static_cast<float>(result.rate));
    // Wait for the GPU only after the update is launched.
    result.loss = mesh_.data().sum(result.loss + sum_of_losses() / targets);
    const Scratch scratch(ctx_);
    result.norm = to_host(ctx_, clip_).as<float>()[0];
    if (!std::isfinite(result.loss) || !std::isfinite(result.norm))
        throw Diverged(concat(
            "step ", step, ": the loss or the gradients are not finite (got a loss of ",
            result.loss, " and a norm of ", result.norm,
            "); start a new run from a checkpoint: --model CHECKPOINT/ and another --output-dir, "
            "with a smaller --learning-rate, a longer --warmup or --skip-outliers"));
    const double loss = outliers_.losses.add(result.loss), norm = outliers_.norms.add(result.norm);
    result.skipped = !immediate && (loss > o.skip_outliers || norm > o.skip_outliers);
    if (!immediate && !result.skipped) update(step, static_cast<float>(result.rate));
    round_matrices(step);
    return result;
}

// clip_ = the norm of all ranks' gradients, and their factor. A rank has the norms of its parts of
// the sums; the norm of all norms has the same bits everywhere.
void Trainer::clip() {
    const auto most = static_cast<float>(options_.optimizer.clip);
    if (!sharded_) {
        mesh_.data().all_reduce(ctx_, gradients_);
        return clip_by_norm(ctx_, clip_, gradients_, most);
    }
    if (!overlap_) {
        for (size_t i = 0; i < buckets_.size(); ++i) sum_over_ranks(ctx_, i);
        side_->join(ctx_);
    }
    const Tensor norms = norms_.slice(0, norms_.size() - 1);
    mesh_.all().all_gather(ctx_, norms);
    clip_by_norm(ctx_, clip_, norms, most);
}

void Trainer::fill(StateTensor which, const std::function<void(Tensor)>& write) {
    if (which == StateTensor::parameters)
        return shard_.fill(ctx_, parameters(), {{0, layout_.size()}}, write);
    std::vector<Range> ranges;
    for (const ZeroBucket& bucket : buckets_) ranges.push_back(bucket.local);
    shard_.fill(ctx_, which == StateTensor::m ? m_ : v_, ranges, write);
}

Tensor Trainer::gather(StateTensor which) {
    const Tensor all = which == StateTensor::parameters ? parameters()
                       : which == StateTensor::m        ? gather_moment(m_)
                                                        : gather_moment(v_);
    return mesh_.data().first() ? shard_.gather(ctx_, all) : Tensor();
}

// All of a moment of which each data rank has a part.
Tensor Trainer::gather_moment(const Tensor& moment) {
    if (!sharded_) return moment;
    const Scratch scratch(ctx_);
    const Tensor host = to_host(ctx_, moment);
    int64_t at = 0;
    for (const ZeroBucket& bucket : buckets_) {  // into the gradients, unused between steps
        const int64_t next = at + bucket.local.size();
        copy_to_device(ctx_, gradients_.slice(bucket.local.begin, bucket.local.end),
                       host.slice(at, next));
        mesh_.data().all_gather(ctx_, gradients_.slice(bucket.full.begin, bucket.full.end));
        at = next;
    }
    wait_for(ctx_);  // until the host's copy has been read
    return gradients_.slice(0, layout_.size());
}

void Trainer::update(int64_t step, float rate) {
    const OptimizerOptions& o = options_.optimizer;
    const AdamW with = {.rate = rate,
                        .beta1 = static_cast<float>(o.beta1),
                        .beta2 = static_cast<float>(o.beta2),
                        .eps = static_cast<float>(o.epsilon),
                        .decay = static_cast<float>(o.weight_decay),
                        .step = step};
    if (o.optimizer == "adamw") return update_buckets(with);
    const auto adamw_of = [&](int64_t begin, int64_t end, int64_t decayed) {
        adamw(ctx_, parameters_.slice(begin, end), m_.slice(begin, end), v_.slice(begin, end),
              gradients_.slice(begin, end), clip_, decayed, with);
    };
    adamw_of(0, layout_.tables(), layout_.tables());
    adamw_of(layout_.decayed(), layout_.size(), 0);
    update_blocks_with_muon(ctx_, layout_, parameters(), m_, gradients_, clip_,
                            {.rate = rate,
                             .momentum = static_cast<float>(o.muon_momentum),
                             .decay = with.decay,
                             .products = weights_.token_table.dtype});
}

// AdamW on this rank's part of each bucket, and the all-gather of its parameters.
void Trainer::update_buckets(const AdamW& with) {
    int64_t at = 0;
    for (const ZeroBucket& bucket : buckets_) {
        const Range& part = bucket.local;
        const auto of_part = [&](const Tensor& all) { return all.slice(part.begin, part.end); };
        const int64_t next = at + part.size();
        adamw(ctx_, of_part(parameters_), m_.slice(at, next), v_.slice(at, next),
              of_part(gradients_), clip_,
              std::clamp<int64_t>(layout_.decayed() - part.begin, 0, part.size()), with);
        at = next;
        if (side_)
            side_->run(ctx_, [&](Context& side) {
                mesh_.data().all_gather(side,
                                        parameters_.slice(bucket.full.begin, bucket.full.end));
            });
    }
    if (side_) side_->join(ctx_);
}

double Trainer::validate(const TokenWindows& windows, int64_t tokens) {
    const ProfileSpan span("validate");
    const auto whole = static_cast<uint64_t>(std::max<int64_t>(1, tokens / options_.length));
    const uint64_t count = std::min(whole, windows.size());
    std::vector<int32_t> window(static_cast<size_t>(options_.length + 1));
    double sum = 0;
    const auto batch = static_cast<uint64_t>(options_.batch);  // per rank; ranks take turns
    const auto rank = static_cast<uint64_t>(mesh_.data().rank()),
               all = batch * static_cast<uint64_t>(mesh_.data().size());
    for (uint64_t begin = batch * rank; begin < count; begin += all) {
        const Scratch scratch(ctx_);
        const uint64_t end = std::min(count, begin + batch);
        val_rows_.clear();
        for (uint64_t i = begin; i < end; ++i) {
            windows.copy(i, 0, window);
            val_rows_.add(window);
        }
        const auto rows = static_cast<int64_t>(end - begin) * options_.length;
        Tensor losses = ctx_.arena.tensor(Dtype::f32, {rows});
        compute_losses(ctx_, mesh_.tensor(), config_, weights_, to_device(ctx_, val_rows_.view()),
                       losses);
        sum += sum_of(to_host(ctx_, losses));
    }
    return mesh_.data().sum(sum) /
           static_cast<double>(count * static_cast<uint64_t>(options_.length));
}

double Trainer::flops_per_step() const {
    const auto layers = static_cast<double>(config_.n_layer);
    const auto c = static_cast<double>(config_.n_embd);
    const auto q = static_cast<double>(config_.q_width());
    const double attention = c * (2 * q + 2 * static_cast<double>(config_.kv_width()));
    const double mlp = (config_.gated_mlp ? 3 : 2) * c * static_cast<double>(config_.n_inner);
    const double products =
        layers * (attention + mlp) + static_cast<double>(layout_.padded_vocab()) * c;
    const auto length = static_cast<double>(options_.length);
    return (6 * products + 6 * layers * q * length) * length *
           static_cast<double>(options_.sequences_per_step());
}

size_t Trainer::activation_peak() const {
    return scratch_ ? scratch_->context().arena.peak() : ctx_.arena.peak();
}

size_t Trainer::memory_bytes() const {
    return memory_.capacity() + ctx_.arena.capacity() + (scratch_ ? scratch_->capacity() : 0);
}

}  // namespace hark::gpt
