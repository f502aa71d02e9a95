#include "serve/models/text_served.h"

#include <utility>

#include "serve/text/model_calls.h"
#include "serve/text/text_model.h"

namespace hark::serve {

TextServed::TextServed(std::unique_ptr<TextModel> model, TextServiceOptions options,
                       std::shared_ptr<const ServerThread> thread)
    : model_(std::move(model)), options_(std::move(options)), thread_(std::move(thread)) {}

TextServed::~TextServed() = default;

void TextServed::follow() { follow_calls(*model_); }

void TextServed::begin() {
    service_ = std::make_unique<TextService>(
        *model_, options_, thread_->post,
        [thread = thread_, name = options_.name](const std::string& why) {
            thread->broken(name + ": " + why);
        });
}

void TextServed::stop() { service_->stop(); }

int64_t TextServed::bytes() const { return model_->bytes(); }

}  // namespace hark::serve
