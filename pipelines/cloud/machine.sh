# Sourced by hark lambda: one instance as a machine: reached by ssh, checked, given hark, its deadline
# and its models. There the folder ~/hark has package/ (root is where its bin/ is), files/ and job/.
# shellcheck shell=bash disable=SC2154,SC2034

readonly boot_seconds=2400 unhealthy_seconds=480 # how long an instance may boot, may be unhealthy
readonly ssh_tries=30 gate_tries=4 model_tries=3 # ten, thirty and thirty seconds apart
data_there=""                                    # XDG_DATA_HOME=... there, of --filesystem

# use_ssh_key: sets `ssh_key` to the name that Lambda has for this user's key for instances, which is
# made and registered first if there is none.
use_ssh_key() {
    local public name
    [ -f "$store/id_ed25519" ] || ssh-keygen -q -t ed25519 -N '' -C hark -f "$store/id_ed25519" ||
        die "$store/id_ed25519: cannot make a key for ssh"
    public="$(cut -d ' ' -f 1,2 "$store/id_ed25519.pub")"
    name="hark-$(cksum <<< "$public" | cut -d ' ' -f 1)"
    find_ssh_key "$public" && return
    # One that another process registered meanwhile is a duplicate, and is found then.
    ask POST /ssh-keys "$(jq -cn --arg name "$name" --arg key "$public" '{name: $name, public_key: $key}')" ||
        [ "$code" = global/duplicate ] || die_of_problem
    find_ssh_key "$public" || die "$url: the key for ssh, $name, is not among the account's"
}

# check_filesystem: --filesystem is one of the account's, in the region.
check_filesystem() {
    [ -n "$filesystem" ] || return 0
    must_ask GET /file-systems
    jq -e --arg name "$filesystem" --arg region "$region" \
        'any(.data[]; .name == $name and .region.name == $region)' > /dev/null <<< "$answer" ||
        die "--filesystem $filesystem: the account has none of this name in $region"
    data_there="XDG_DATA_HOME=/lambda/nfs/$filesystem/hark"
}

find_ssh_key() {
    must_ask GET /ssh-keys
    ssh_key="$(jq -r --arg key "$1" 'first(.data[] | select(.public_key | startswith($key)) | .name) // ""' \
        <<< "$answer")"
    [ -n "$ssh_key" ]
}

# set_ruleset REGION: sets `ruleset` to the id of the rules that admit --allow to port 22 and nothing
# else; they are made once per region, and kept. Empty in the region that has no rule sets.
set_ruleset() {
    local name="hark-$1-${allow//\//-}" body
    ruleset=""
    [ "$1" != "$no_rulesets" ] || return 0
    must_ask GET /firewall-rulesets
    ruleset="$(jq -r --arg name "$name" --arg region "$1" \
        'first(.data[] | select(.name == $name and .region.name == $region) | .id) // ""' <<< "$answer")"
    [ -z "$ruleset" ] || return 0
    body="$(jq -cn --arg name "$name" --arg region "$1" --arg from "$allow" '{name: $name, region: $region,
        rules: [{protocol: "tcp", port_range: [22, 22], source_network: $from, description: "ssh"}]}')"
    must_ask POST /firewall-rulesets "$body"
    ruleset="$(jq -r '.data.id' <<< "$answer")"
}

# write_ssh_config ID IP: sets `ssh_config`. An instance's host key is kept with its id: addresses come
# back with other keys.
write_ssh_config() {
    mkdir -p "$store/ssh"
    local part
    ssh_config="$store/ssh/$1.conf" part="$store/ssh/$1.$BASHPID"
    cat > "$part" <<END
Host hark
HostName $2
User ubuntu
IdentityFile "$store/id_ed25519"
IdentitiesOnly yes
BatchMode yes
StrictHostKeyChecking accept-new
UserKnownHostsFile "$store/ssh/$1.known"
ConnectTimeout 15
ServerAliveInterval 15
ServerAliveCountMax 4
LogLevel ERROR
END
    mv -f "$part" "$ssh_config"
}

# there COMMAND: runs it on the machine, in ~/hark/job, with hark on the PATH.
there() {
    ssh -F "$ssh_config" hark "mkdir -p ~/hark/job && cd ~/hark/job || exit
        export PATH=\"\$HOME/hark/root/bin:\$PATH\" $data_there
        $1"
}

# copy_files OPTION... FROM... TO: rsync, of which one side is hark:PATH.
copy_files() { rsync -rt --partial --timeout=120 -e "ssh -F '$ssh_config'" "$@"; }

# patiently COMMAND...: runs it so that a signal's trap need not wait for its end. Its standard input
# is this one's.
patiently() {
    local running
    "$@" <&0 &
    running=$!
    wait "$running"
}

# wait_active ID: sets `ip` and `gpus` once the instance is active. Returns 3 if it never is.
wait_active() {
    local began unhealthy="" status
    set_now
    began="$now"
    while :; do
        ask GET "/instances/$1" || {
            say "$1: $problem"
            return 3
        }
        status="$(jq -r '.data.status | strings' <<< "$answer")"
        ip="$(jq -r '.data.ip | strings' <<< "$answer")"
        gpus="$(jq -r '.data.instance_type.specs.gpus' <<< "$answer")"
        set_now
        case "$status" in
            active) [ -z "$ip" ] || return 0 ;;
            booting) ;;
            unhealthy) unhealthy="${unhealthy:-$now}" ;;
            *) say "$1: is $status" && return 3 ;;
        esac
        [ "$status" = unhealthy ] || unhealthy=""
        [ -z "$unhealthy" ] || [ $((now - unhealthy)) -lt "$unhealthy_seconds" ] || {
            say "$1: unhealthy for $(((now - unhealthy) / 60)) minutes"
            return 3
        }
        [ $((now - began)) -lt "$boot_seconds" ] || {
            say "$1: $status for $(((now - began) / 60)) minutes"
            return 3
        }
        pause 10
    done
}

# make_ready ID: the instance is active, answers, has its deadline, and a kernel ran. Returns 3 if it is
# to be replaced.
make_ready() {
    local tries said="$work/ssh.$BASHPID"
    wait_active "$1" || return
    write_ssh_config "$1" "$ip"
    for ((tries = 1; ; tries++)); do
        ! patiently there : < /dev/null 2> "$said" || break
        [ "$tries" -lt "$ssh_tries" ] || {
            say "$1: ssh does not answer: $(tail -n 1 "$said")"
            return 3
        }
        pause 10
    done
    arm_deadline "$1" || { say "$1: cannot set its deadline" && return 3; }
    [ "$gpus" = 0 ] || pass_gate "$1"
}

# pass_gate ID: a kernel runs, and the driver runs the package's CUDA.
pass_gate() {
    local tries said
    for ((tries = 1; tries <= gate_tries; tries++)); do
        said="$(patiently ssh -F "$ssh_config" hark "python3 -" < "$here/cloud/gpu_check.py" 2>&1)" || {
            [ "$tries" -eq "$gate_tries" ] || pause 30
            continue
        }
        [[ "$said" =~ ok\ ([0-9]+)\.[0-9]+\ ([0-9]+)\ (.*) ]] || break
        [ -z "$needs_cuda" ] || [ "${BASH_REMATCH[1]}" -ge "$needs_cuda" ] ||
            die "$1: its driver runs CUDA ${BASH_REMATCH[1]}, and the package needs" \
                "CUDA $needs_cuda${needs_driver:+, a driver of version $needs_driver or newer}"
        say "$1: ready: a kernel ran on ${BASH_REMATCH[2]} x ${BASH_REMATCH[3]}"
        return 0
    done
    say "$1: no kernel runs: ${said##*$'\n'}"
    return 3
}

# arm_deadline ID: a process of root there asks for the end of the instance at the deadline, or when it
# alone would have used the budget up, whatever has become of this computer. It has the key in its
# memory alone. A second one replaces the first.
arm_deadline() {
    local seconds allowed="$deadline_seconds" left
    if [ -n "$budget_cents" ]; then
        set_spent "hark-$run-"
        left=$(((budget_cents - spent) * 3600 / (rate > 0 ? rate : 1)))
        [ "$left" -gt 60 ] || left=60
        [ "$allowed" -gt 0 ] && [ "$allowed" -lt "$left" ] || allowed="$left"
    fi
    [ "$allowed" -gt 0 ] || return 0
    real_seconds $((allowed * 1000))
    # shellcheck disable=SC2016
    printf '%s\n' "$key" | ssh -F "$ssh_config" hark "mkdir -p ~/hark && cd ~/hark && exec sudo bash -c $(quoted '
        IFS= read -r key
        old="$(cat deadline.pid 2> /dev/null)"
        [ -z "$old" ] || ! grep -qs hark-deadline "/proc/$old/cmdline" || kill "$old"
        printf "%s\n" "$key" | setsid -f bash -c "$0" hark-deadline "$@" > /dev/null 2>&1' '
        IFS= read -r key
        exec < /dev/null
        echo "$$" > deadline.pid
        sleep "$3"
        while :; do
            curl -q -s --max-time 40 --config <(printf "header = \"Authorization: Bearer %s\"\n" "$key") \
                --header "Content-Type: application/json" --data-binary "{\"instance_ids\":[\"$1\"]}" \
                "$2/instance-operations/terminate"
            sleep 20
        done') $(quoted "$1" "$url" "$seconds")"
}

# check_package: sets `package` to a tar file that has hark, `package_sum`, `built` to the processor that
# it is for, `needs_cuda` to the major version of CUDA that its library is linked with, and `needs_driver` to
# the first driver that runs it. Empty: unknown.
check_package() {
    local root="$here/../.." listing program folders
    if [ -z "$package" ]; then
        [ -x "$root/bin/hark" ] && [ -x "$root/libexec/hark/batch" ] ||
            die "--package FILE is required: a tar file or a folder of an installed hark (cmake --install)"
        package="$root"
    fi
    if [ -d "$package" ]; then
        mapfile -t folders < <(cd "$package" && find bin lib lib64 libexec share -maxdepth 0 2> /dev/null)
        tar -C "$package" -cf "$work/package.tar" "${folders[@]}" || die "$package: cannot read this folder"
        package="$work/package.tar"
    fi
    listing="$(tar -tf "$package")" || die "$package: expected a tar file"
    for program in bin/hark bin/whisper-transcribe libexec/hark/batch; do
        grep -qE "^(\./)?([^/]+/)?$program\$" <<< "$listing" ||
            die "$package: has no $program; expected an installed hark"
    done
    package_sum="$(sha256sum < "$package" | cut -d ' ' -f 1)"
    program="$(grep -E '^(\./)?([^/]+/)?bin/whisper-transcribe$' <<< "$listing")"
    case "$(tar -xOf "$package" "$program" | head -c 20 | od -An -tx1 | tr -d ' \n')" in
        7f454c46*3e00) built=x86_64 ;;
        7f454c46*b700) built=aarch64 ;;
        *) built="" ;;
    esac
    program="$(grep -E '(^|/)libhark-cuda\.so$' <<< "$listing" | head -n 1)"
    needs_cuda=""
    [ -z "$program" ] ||
        needs_cuda="$(tar -xOf "$package" "$program" | grep -aoE 'libcublasLt\.so\.[0-9]+' |
            sed -n '1s/.*\.//p')"
    case "$needs_cuda" in
        12) needs_driver=525 ;;
        13) needs_driver=580 ;;
        *) needs_driver="" ;;
    esac
    [ -z "$needs_cuda" ] || say "the package needs CUDA $needs_cuda${needs_driver:+, a driver of version $needs_driver or newer}"
}

# send_package ID: unless it is there. All tools must start there, and the CUDA library must find its own.
send_package() {
    local said
    said="$(there 'cat ../package.sum 2> /dev/null || true')" || return 3
    [ "$said" != "$package_sum" ] || return 0
    patiently copy_files "$package" hark:hark/package.tar || return 3
    # shellcheck disable=SC2016
    said="$(there 'cd ~/hark && rm -rf package root && mkdir package && tar -xf package.tar -C package || exit 9
        root="$(ls -d package/bin/hark package/*/bin/hark 2> /dev/null | head -n 1)"
        ln -s "${root%/bin/hark}" root && rm package.tar
        for tool in hark audio-decode mel whisper-transcribe; do root/bin/$tool --version || {
            ldd root/bin/$tool | grep "not found"; exit 9; }; done
        for library in root/lib*/libhark-cuda.so root/lib*/hark/libhark-cuda.so root/lib/*/hark/libhark-cuda.so; do
            [ ! -e $library ] || ! ldd $library | grep "not found" || exit 9; done' 2>&1)"
    case $? in
        0) ;;
        255) return 3 ;;
        *) die "$1: the package does not run there: $(tail -n 3 <<< "$said")" ;;
    esac
    there "echo $package_sum > ../package.sum" || return 3
}

# send_files ID: the files and folders that the job's options name, and the models that they name. Returns 3 if
# the machine is lost.
send_files() {
    local i name said status
    there 'mkdir -p ../files' || return 3
    for ((i = 0; i < ${#job_files[@]}; i += 2)); do
        patiently copy_files -L "${job_files[i]}" "hark:hark/files/${job_files[i + 1]}" || return 3
    done
    for name in "${job_models[@]}"; do
        for ((i = 1; i <= model_tries; i++)); do
            [ "$i" -eq 1 ] || pause 30
            said="$(patiently there "hark model info $(quoted "$name") > /dev/null 2>&1 ||
                hark model get $(quoted "$name")" < /dev/null 2>&1)" && continue 2
            status=$?
        done
        [ "$status" -ne 255 ] || { say "$1: ssh does not answer: ${said##*$'\n'}" && return 3; }
        die "$1: no model '$name' there: ${said##*$'\n'}"
    done
}
