#!/bin/sh
# Writes every recording of this folder, and transcripts.tsv, from the tables below.
#
#   sudo apt-get install espeak-ng flite ffmpeg sox
#   samples/make.sh
#
# Run it again and the lossless files (wav, flac, mkv) come out bit for bit the same with the same
# versions of the tools (espeak-ng 1.51, flite 2.2, FFmpeg 5.1, SoX 14.4.2). The tests' golden files
# depend on the 16 kHz WAV files as they are committed: with other versions, do not commit the result
# without writing tests/golden/*.json anew.
set -eu
. "$(dirname "$0")/../pipelines/help.sh"
help_if_asked "$@"
[ $# = 0 ] || { echo "make.sh: expected no argument, found '$1'" >&2; exit 2; }
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# speak VOICE SPEED TEXT OUT.wav: VOICE is espeak:NAME or flite:NAME; SPEED is words a minute for
# espeak-ng (0: its default), a duration factor for flite (0: its default).
speak() {
    case $1 in
    espeak:*)
        if [ "$2" = 0 ]; then espeak-ng -v "${1#*:}" -w "$4" "$3"
        else espeak-ng -v "${1#*:}" -s "$2" -w "$4" "$3"; fi ;;
    flite:*)
        if [ "$2" = 0 ]; then flite -voice "${1#*:}" -t "$3" -o "$4"
        else flite -voice "${1#*:}" --setf duration_stretch="$2" -t "$3" -o "$4"; fi ;;
    esac
}

# A WAV file with a plain header of 44 bytes (-bitexact keeps ffmpeg's own tags out), or another
# container without date, encoder name or random serial number.
convert() { # IN OUT RATE CHANNELS [ffmpeg options]
    in=$1 out=$2 rate=$3 channels=$4
    shift 4
    ffmpeg -nostdin -v error -y -bitexact -i "$in" -map_metadata -1 -fflags +bitexact \
        -flags:a +bitexact -ar "$rate" -ac "$channels" "$@" "$out"
}

encode() { # IN OUT: by the name's ending
    case $2 in
    telephone.wav) convert "$1" "$2" 8000 1 -c:a pcm_s16le ;;
    *.wav) convert "$1" "$2" 16000 1 -c:a pcm_s16le ;;
    *.flac) convert "$1" "$2" 44100 1 -c:a flac -sample_fmt s16 ;;
    *.ogg) convert "$1" "$2" 22050 1 -c:a libvorbis -q:a 3 ;;
    *.mp3) convert "$1" "$2" 22050 1 -c:a libmp3lame -b:a 40k ;;
    *.m4a) convert "$1" "$2" 44100 1 -c:a aac -b:a 64k ;;
    *.webm) convert "$1" "$2" 48000 1 -c:a libopus -b:a 32k ;;
    *.mkv) convert "$1" "$2" 32000 1 -c:a flac -sample_fmt s16 ;;
    *.mp4) # a test picture beside the sound, as a film has
        ffmpeg -nostdin -v error -y -bitexact -i "$1" -f lavfi -i testsrc=size=96x64:rate=5 \
            -shortest -map 1:v -map 0:a -map_metadata -1 -fflags +bitexact -flags:v +bitexact \
            -flags:a +bitexact -c:v mpeg4 -q:v 20 -c:a aac -b:a 64k -ar 48000 -ac 2 "$2" ;;
    esac
}

printf 'file\tlanguage\tvoice\ttext\n' > transcripts.tsv

# File, language, voice, speed, text. The 16 kHz WAV files come first.
cat > "$scratch/table" <<'TABLE'
harbour.wav|en|flite:slt|0|The old captain walked slowly down to the harbour.
road.wav|en|flite:slt|0|She looked out of the window and saw a man in the road.
minister.wav|en|flite:rms|0|The minister said that the new law would come next week.
hat.wav|en|flite:rms|0|He took off his hat and sat down by the fire.
lights.wav|en|flite:kal16|0|Turn off the lights in the kitchen.
mountain.wav|en|flite:kal16|0|It is a long way to the top of the mountain.
alarm.wav|en|flite:awb|0|Set an alarm for seven in the morning.
sea.wav|en|flite:awb|0|He lived with his mother in a small house by the sea.
prices.wav|en|espeak:en|0|The prices of oil and bread have gone up again.
key.wav|en|espeak:en|150|Where did you leave the key to the door?
train.wav|en|espeak:en-us|0|The train to the city leaves at seven in the morning.
music.wav|en|espeak:en-us|0|Play some music in the living room.
stranger.wav|en|espeak:en-us|190|A stranger stood at the window, and nobody knew his name.
answer.wav|en|espeak:en-us|160|Nobody answered, and the door was shut.
nacht.wav|de|espeak:de|0|Es war sehr kalt in der Nacht.
vater.wav|de|espeak:de|0|Der Vater war nicht zu Hause.
maison.wav|fr|espeak:fr-fr|125|Il est dans la maison.
roi.wav|fr|espeak:fr-fr|140|Le roi avait trois filles.
telephone.wav|en|flite:kal|0|Please call the office after four o'clock.
family.flac|en|flite:slt|0|My mother was in the kitchen, and my father was in the garden.
forest.ogg|en|espeak:en-us|0|Deep in the forest there lived a poor man with three sons.
company.mp3|en|flite:awb|0|The company sold more cars this year than ever before.
jardin.mp3|fr|espeak:fr-fr|140|Les enfants jouent dans le jardin.
room.m4a|en|espeak:en|0|There was a long silence in the room.
ship.webm|en|flite:kal16|1.1|In the morning the wind had changed, and the ship was ready.
rain.mkv|en|flite:slt|0|He sat by the window and watched the rain.
news.mp4|en|flite:kal16|0|And now the news from the city.
TABLE
while IFS='|' read -r file language voice speed text; do
    speak "$voice" "$speed" "$text" "$scratch/voice.wav"
    encode "$scratch/voice.wav" "$file"
    printf '%s\t%s\t%s\t%s\n' "$file" "$language" "$voice" "$text" >> transcripts.tsv
done < "$scratch/table"

# Two speakers, one on the left and one on the right, who take turns.
speak flite:awb 0 'Did you hear the bell?' "$scratch/left.wav"
speak flite:slt 0 'Yes, I think someone is at the door.' "$scratch/right.wav"
sox -D "$scratch/left.wav" "$scratch/left_padded.wav" pad 0 3
sox -D "$scratch/right.wav" "$scratch/right_padded.wav" pad 1.8 0
sox -D -M "$scratch/left_padded.wav" "$scratch/right_padded.wav" "$scratch/both.wav"
convert "$scratch/both.wav" two_speakers.flac 16000 2 -c:a flac -sample_fmt s16
printf 'two_speakers.flac\ten\tflite:awb (left), flite:slt (right)\t%s\n' \
    'Did you hear the bell? | Yes, I think someone is at the door.' >> transcripts.tsv

# Digital silence, and white noise at 0.01 of full scale (SoX's generator starts from a fixed seed).
sox -D -R -n -r 16000 -b 16 -c 1 "$scratch/silence.wav" trim 0 3
convert "$scratch/silence.wav" silence.wav 16000 1 -c:a pcm_s16le
sox -D -R -n -r 16000 -b 16 -c 1 "$scratch/noise.wav" synth 4 whitenoise vol 0.01
convert "$scratch/noise.wav" noise.wav 16000 1 -c:a pcm_s16le
printf 'silence.wav\t\tdigital silence\t\nnoise.wav\t\twhite noise, 0.01 of full scale\t\n' \
    >> transcripts.tsv

# The longer sample: a story of several sentences.
story=
cat > "$scratch/story" <<'STORY'
He was a very old man, and he had no children.
He lived in a small house by the sea.
One day a young woman came to his door.
She was cold and tired, and she asked him for a piece of bread.
The old man took off his hat and sat down by the fire.
There was a long silence in the room.
I do not know what you mean, he said.
The young woman laughed and shook her head.
In the morning the wind had changed, and the ship was ready.
STORY
set --
while IFS= read -r sentence; do
    speak espeak:en-us 0 "$sentence" "$scratch/sentence_$#.wav"
    sox -D "$scratch/sentence_$#.wav" "$scratch/spaced_$#.wav" pad 0 0.2
    set -- "$@" "$scratch/spaced_$#.wav"
    story="$story${story:+ }$sentence"
done < "$scratch/story"
sox -D "$@" "$scratch/story.wav"
convert "$scratch/story.wav" story.mp3 22050 1 -c:a libmp3lame -b:a 48k
printf 'story.mp3\ten\tespeak:en-us\t%s\n' "$story" >> transcripts.tsv
