#include "core/error.h"
#include "operations/shards/inputs.h"

namespace hark::shards {
namespace {

using Fields = nlohmann::ordered_json;

// The path or URL of a recording's sound.
std::string sound_of(const Fields& recording, const std::string& where) {
    const auto sources = recording.find("sources");
    require(sources != recording.end() && sources->is_array() && sources->size() == 1 &&
                sources->front().is_object(),
            where, ": expected a recording with one source");
    const Fields& source = sources->front();
    const std::string type = text_at(source, "type", where);
    require(type == "file" || type == "url", where, ": expected a source that is a file or a url, ",
            "found '", type, "'; save it as files first");
    const auto channels = source.find("channels");
    require(channels == source.end() || *channels == Fields::array({0}), where,
            ": expected channel 0 alone: all channels are mixed; split the file first");
    return text_at(source, "source", where);
}

Fields fields_of_recording(const Fields& recording, const std::string& where) {
    Fields fields = {{"audio_filepath", sound_of(recording, where)},
                     {"id", text_at(recording, "id", where)}};
    if (const auto duration = seconds_at(recording, "duration", where))
        fields["duration"] = *duration;
    return fields;
}

// A cut is a part of its recording; the text, speaker and language are its only supervision's.
Fields fields_of_cut(const Fields& cut, const std::string& where) {
    const auto recording = cut.find("recording");
    require(recording != cut.end() && recording->is_object(), where,
            ": expected a cut with a recording (cuts that are mixed of several have none)");
    Fields fields = fields_of_recording(*recording, where);
    const auto start = seconds_at(cut, "start", where),
               duration = seconds_at(cut, "duration", where);
    require(start && duration, where, ": expected a cut with a start and a duration");
    fields["recording_id"] = fields["id"];
    fields["id"] = text_at(cut, "id", where);
    fields["offset"] = *start;
    fields["duration"] = *duration;
    const auto supervisions = cut.find("supervisions");
    if (supervisions == cut.end() || !supervisions->is_array() || supervisions->size() != 1)
        return fields;
    for (const auto& [key, ours] :
         {std::pair{"text", "text"}, {"speaker", "speaker"}, {"language", "lang"}})
        if (const std::string text = text_at(supervisions->front(), key, where); !text.empty())
            fields[ours] = text;
    return fields;
}

}  // namespace

std::vector<ManifestEntry> parse_lhotse(std::string_view lines, const std::filesystem::path& folder,
                                        const std::string& where) {
    return entries_of_lines(
        lines, folder, where, [](const Fields& object, const std::string& place) {
            return object.contains("sources") ? fields_of_recording(object, place)
                                              : fields_of_cut(object, place);
        });
}

}  // namespace hark::shards
