#!/usr/bin/env bash
# Runs programs that were written for OpenAI's API against hark-serve with the demonstration models, and
# checks each answer. They are installed from PyPI into a folder that is removed at the end, so this is no
# part of tests/run.sh. Arguments: the folder of the tools, by default build/bin.
set -euo pipefail
cd "$(dirname "$0")/.."
bin="$(realpath "${1:-build/bin}")"
work="$(mktemp -d)"
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --requirement tests/clients.txt

# The demonstration model has no template of its own.
cat > "$work/template.jinja" << 'END'
{% if tools %}{{ tools | length }} tools
{% endif %}{% for message in messages %}{{ message.role }}: {{ message.content }}
{% endfor %}assistant:
END
XDG_DATA_HOME="$work" "$bin/hark-serve" --model demo --chat-template "$work/template.jinja" --port 0 2> "$work/said" &
server=$!
until grep -q '^listening on ' "$work/said"; do
    kill -0 "$server" || { cat "$work/said" >&2; exit 1; }
    sleep 0.1
done
url="$(sed -n 's/^listening on //p' "$work/said")"

export OPENAI_API_KEY=none LITELLM_LOCAL_MODEL_COST_MAP=True LLM_USER_PATH="$work/llm"
mkdir "$LLM_USER_PATH"
cat > "$LLM_USER_PATH/extra-openai-models.yaml" << END
- model_id: hark
  model_name: demo
  api_base: "$url/v1"
END
PATH="$work/venv/bin:$PATH" "$work/venv/bin/python" tests/clients.py "$url" "$bin"

# curl shows each event when it comes.
curl -sN "$url/v1/completions" -H 'Content-Type: application/json' \
    -d '{"model": "demo", "prompt": "Once", "max_tokens": 3, "stream": true}' | tail -n 2 | grep -qx 'data: \[DONE\]'
kill "$server"
wait "$server"
server=
echo "all clients: passed"
