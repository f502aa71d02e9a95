#include "serve/serve_options.h"

#include "core/machine/loopback.h"
#include "gpt/answers/batch_options.h"
#include "kernels/comm/processes.h"
#include "serve/web/paths.h"

namespace hark::serve {
namespace {

constexpr double kMostSeconds = 1e6;

}  // namespace

void ServeOptions::flags(Flags& flags) {
    flags.reject_arguments([](const std::string& arguments, const std::string&) {
        return concat("takes no arguments (got ", arguments, "); name a model with --model ",
                      arguments);
    });
    model_flags(flags);
    address_flags(flags);
    limit_flags(flags);
    text_flags(flags);
}

void ServeOptions::model_flags(Flags& flags) {
    flags.section("Models");
    flags.add_repeated("model,m", models, "MODEL name, folder or file of a model; several times")
        .essential()
        .own_variable()
        .completes(Completes::model)
        .details(
            "A language model or a Whisper model. All are read before the first request is taken, "
            "and stay. Requests name a model as it is given here; of a path its last part. Other "
            "models that are installed (hark-model list) are read when a request names them.");
    flags
        .add_switch("only-named", only_named,
                    "refuse requests for models that --model does not name")
        .essential()
        .own_variable();
    flags
        .add("keep-alive", keep_seconds,
             "SECONDS without requests until a model not in --model is unloaded", 0, kMostSeconds)
        .own_variable()
        .details(
            "A model that --model does not name is unloaded after that time; earlier if its memory "
            "is needed for one that a request names. A language model of --model gives the memory "
            "of its keys and values back.");
    flags
        .add("memory-fraction", memory_fraction, "F of the free memory that all models may take",
             0.01, 1.0)
        .own_variable()
        .details(
            "Of the device's memory that is free when the server starts: for weights, caches and "
            "the memory of passes. What the weights leave is divided among the caches; without "
            "--only-named half of it is kept for models that requests name.");
}

void ServeOptions::address_flags(Flags& flags) {
    flags.section("Address");
    flags.add("port", port, "N port of TCP; 0: any that is free", 0, 65535)
        .essential()
        .own_variable();
    flags.add("host", web.host, "ADDRESS address of this machine to listen on")
        .essential()
        .own_variable()
        .details(
            "127.0.0.1 takes connections of this machine alone. For another one use --api-keys, "
            "and a proxy for HTTPS.");
    flags.add_name("socket", web.socket, "PATH Unix socket instead of a port")
        .own_variable()
        .completes(Completes::file);
    flags.add_name("api-keys", api_keys, "FILE keys, one per line, of which requests need one")
        .essential()
        .own_variable()
        .completes(Completes::file)
        .details("As the header Authorization: Bearer KEY. /health needs none.");
}

void ServeOptions::limit_flags(Flags& flags) {
    flags.section("Limits");
    flags
        .add("max-queue", most_waiting, "N prompts, or recordings, that wait; others: 429", 0,
             1 << 20)
        .own_variable();
    flags.add("max-live", most_live, "N live sessions of a Whisper model; others: 429", 0, 1024)
        .own_variable()
        .details("Each has caches of its own, and they share the model's time.");
    flags.add("max-request-mb", most_request_mb, "N size of a JSON request, in MB", 1, 1 << 12)
        .own_variable();
    flags.add("max-upload-mb", most_upload_mb, "N size of a recording's request, in MB", 1, 1 << 20)
        .own_variable()
        .details("It is kept in a temporary file until its transcript has been written.");
    flags.add("max-audio-seconds", audio.most_seconds, "SECONDS longest recording", 1, kMostSeconds)
        .own_variable();
    flags
        .add("client-timeout", web.client_seconds, "SECONDS for a client to send or read a part",
             0.1, kMostSeconds)
        .own_variable()
        .details(
            "For a request's head, for each 64 KiB of its body, and for each 16 KiB of an answer. "
            "A slower client is cut off. An idle connection is closed after this time.");
    flags
        .add("answer-timeout", web.answer_seconds, "SECONDS for an answer, from its request on",
             0.1, kMostSeconds)
        .own_variable();
    flags
        .add("drain-timeout", web.drain_seconds, "SECONDS for running requests after SIGTERM", 0,
             kMostSeconds)
        .own_variable();
}

void ServeOptions::text_flags(Flags& flags) {
    flags.section("Language models");
    flags
        .add("max-sequences", text.max_sequences, "N answers at once; 0: 16, on a GPU 256", 0, 4096)
        .own_variable();
    flags
        .add("context", text.context, "N tokens that the cache holds; 0: the model's own", 0,
             1 << 30)
        .own_variable();
    gpt::add_batch_invariant(flags, text.batch_invariant);
    flags.add_name("chat-template", text.chat_template, "FILE template instead of the model's own")
        .own_variable()
        .completes(Completes::file)
        .details("Of the models that --model names. In Jinja, as a model's chat_template.jinja.");
    compute.flags(flags);
    flags.add("gpus", gpus, "N GPUs of this machine, one process each", 1, 64)
        .own_variable()
        .details(
            "Each has its share of the language model: of the heads and of the MLPs' channels, "
            "which N divides. Needs --only-named and one language model; the first process has the "
            "Whisper models. mpirun and srun start processes on several machines, or on CPUs.");
}

void ServeOptions::check() const {
    require_usage(!models.empty() || !only_named,
                  "--only-named: needs --model, a language model or a Whisper model");
    check_gpus(gpus, compute);
    require_usage(only_named || (gpus == 1 && launched_processes() == 1),
                  gpus > 1 ? "--gpus: needs --only-named" : "several processes need --only-named",
                  ": models that requests name are computed by one process");
}

void ServeOptions::take_passed() {
    web.passed = take_passed_socket();
    if (!web.passed) return;
    require(web.socket.empty(), "--socket: a socket was passed by LISTEN_FDS; leave it out");
    web.host = web.passed->host;
    web.socket = web.passed->path;
}

bool ServeOptions::is_open() const {
    return api_keys.empty() && web.socket.empty() && !is_loopback(web.host);
}

WebServerOptions ServeOptions::web_options() const {
    WebServerOptions options = web;
    options.port = static_cast<int>(port);
    return options;
}

TextModelOptions ServeOptions::text_options() const {
    TextModelOptions options = text;
    options.compute = compute;
    return options;
}

AudioModelOptions ServeOptions::audio_options() const {
    AudioModelOptions options = audio;
    options.compute = compute;
    options.live_sessions = most_live;
    return options;
}

ApiOptions ServeOptions::api_options() const {
    return {.keys = api_keys.empty() ? ApiKeys() : ApiKeys::read(api_keys),
            .checks_host = api_keys.empty() && web.socket.empty() && is_local_host(web.host),
            .most_json_bytes = static_cast<size_t>(most_request_mb) << 20,
            .most_form_bytes = static_cast<size_t>(most_upload_mb) << 20};
}

}  // namespace hark::serve
