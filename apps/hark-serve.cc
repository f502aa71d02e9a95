// hark-serve: OpenAI's HTTP endpoints, answered by language models and Whisper.
//
//   WebServer -> Routes -> TextService -> gpt::Engine
//                    -> AudioService -> audio-decode, whisper::Transcriber
//                                    -> whisper::LiveSession
#include <csignal>

#include "core/cli/ending_signal.h"
#include "kernels/comm/processes.h"
#include "serve/models/served_models.h"
#include "serve/routes.h"
#include "serve/serve_options.h"
#include "serve/web/web_server.h"

using namespace hark;

namespace {

void serve_models(const serve::ServeOptions& options, Console& console) {
    std::signal(SIGPIPE, SIG_IGN);
    watch_ending_signals();
    serve::ApiOptions api_options = options.api_options();
    serve::WebServer server(options.web_options());
    serve::ServedModels models(options, console);
    models.start({.post = [&](std::function<void()> work) { server.post(std::move(work)); },
                  .post_later =
                      [&](double seconds, std::function<void()> work) {
                          server.post_later(seconds, std::move(work));
                      },
                  .broken = [&](const std::string& why) { server.fail_with(why); }});
    serve::Routes routes(std::move(api_options), models);
    const std::string address = server.listen();
    on_ending_signal([&] {
        serve::tell_manager("STOPPING=1");
        server.drain();
    });
    console.table_line("listening on " + address);
    if (options.is_open())
        console.warning("whoever reaches this address may use it; give --api-keys FILE");
    serve::tell_manager("READY=1");
    server.run(routes);
    on_ending_signal(nullptr);
}

// Ends when the first process does, which answers what runs before.
void follow(const serve::ServeOptions& options, Console& console) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
    serve::ServedModels(options, console).follow();
}

void run(const serve::ServeOptions& given, Console& console) {
    given.check();
    serve::ServeOptions options = given;
    options.take_passed();
    hold_ending_signals();  // before there are other threads: MPI has some
    with_links(options.gpus, console, [&](std::unique_ptr<Transport> links) {
        if (!links) return serve_models(options, console);
        Context ctx = context_of(options.gpus, options.compute, console, links.get());
        options.compute.device = ctx.on_cuda() ? concat("cuda:", ctx.device_index) : "cpu";
        const std::unique_ptr<Communicator> ranks = make_communicator(ctx, std::move(links));
        options.text.ranks = ranks.get();
        ranks->first() ? serve_models(options, console) : follow(options, console);
        ranks->finish();
    });
}

constexpr ToolHelp kHelp = {
    .name = "hark-serve",
    .summary = "Serves language models and Whisper with OpenAI's HTTP endpoints.",
    .description =
        R"(Clients of OpenAI's API use it with the base URL http://127.0.0.1:8080/v1.
Endpoints: /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/models,
/v1/audio/transcriptions, /v1/audio/translations, /v1/audio/live, /tokenize,
/detokenize, /health and /metrics; docs/serve.md has their fields.
/ is a page for browsers, with transcripts of recordings and of the microphone,
and a chat about them.
Requests of many clients are computed together. A client that leaves ends its
request. Nothing of a request is written to stderr or to a file.
Models of --model are read first and stay. A request may name any other model
that is installed: it waits until that is read. --only-named forbids it.
SIGTERM ends the server once the running requests have been answered, a second
one at once.)",
    .examples = R"(# A language model and a Whisper model, for programs of this machine
hark-serve --model Qwen/Qwen2.5-1.5B-Instruct --model small
# A question, in another shell
curl http://127.0.0.1:8080/v1/chat/completions \
    -H 'Content-Type: application/json' \
    -d '{"model": "Qwen/Qwen2.5-1.5B-Instruct",
         "messages": [{"role": "user", "content": "Why is the sky blue?"}]}')",
    .is_measured = true,
};

}  // namespace

int main(int argc, char** argv) { return tool_main<serve::ServeOptions>(kHelp, argc, argv, run); }
