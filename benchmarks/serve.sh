#!/usr/bin/env bash
# Serves files by Kestrel without and with app.UseFilePipelines() and app.MapFiles(), and by nginx and caddy where they are installed: all up at once, measured in turns by wrk.
#     bash benchmarks/serve.sh [ROUNDS [SECONDS [CASE...]]]           3 rounds of 2 s for each case and server by default
#     bash benchmarks/serve.sh cache [ROUNDS [SECONDS [CASE...]]]     the output cache: entries in memory, in files (AddFileOutputCache), and in Redis where redis-server is installed
#     bash benchmarks/serve.sh uploads [ROUNDS [MIB]]                 uploads of 256 MiB by curl: SaveBodyAsync, MapResumableUploads, Body.CopyToAsync(FileStream), and nginx's PUT where it is installed
#     bash benchmarks/serve.sh entries [COUNT [FOLDER]]               start-up and memory of an output cache with a million entries; FOLDER is filled where it is not, and stays
#     bash benchmarks/serve.sh slow [CLIENTS]                         200 slow clients on a 1 GiB file for 20 s: memory of the server
# A CASE is a size in bytes, or SIZExCOUNT: so many files of that size, asked for at random. Needs wrk. Prints Markdown tables: medians of the rounds; the ratios are medians of the rounds' own, with their quartiles.
set -euo pipefail
export LC_NUMERIC=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly connections=16
next_port=5201
work=$(mktemp -d)
servers=() slow_clients=()
load=$(cut -d' ' -f1 /proc/loadavg)
finish() {
    ((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

dotnet build benchmarks/StaticFileServer -c Release -v quiet --nologo >&2
server=benchmarks/StaticFileServer/bin/Release/net10.0/StaticFileServer
mkdir "$work/root"

# ready PORT: waits until somebody listens there.
ready() {
    local i
    for i in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    echo "No server at port $1." >&2
    return 1
}

# start NAME COMMAND...: in the background; its pid goes to $pid_NAME.
start() {
    local name=$1
    shift
    "$@" &
    servers+=($!)
    printf -v "pid_$name" %d $!
}

# port NAME: the next one, to $port_NAME.
port() {
    printf -v "port_$1" %d $next_port
    next_port=$((next_port + 1))
}

# kestrel NAME WAYS
kestrel() {
    port "$1"
    local -n its_port="port_$1"
    start "$1" "$server" "$work/root" "$its_port" "$2"
    ready "$its_port"
}

# nginx_with NAME DIRECTIVES [ROOT [DIRECTIVES-OF-THE-SERVER]]
nginx_with() {
    port "$1"
    local -n its_port="port_$1"
    mkdir "$work/$1"
    cat >"$work/$1/nginx.conf" <<NGINX
daemon off;
worker_processes 2;
pid $work/$1/nginx.pid;
error_log $work/$1/nginx.log;
events { worker_connections 1024; }
http {
    access_log off; $2 keepalive_requests 1000000000;
    client_body_temp_path $work/$1/body; proxy_temp_path $work/$1/proxy; fastcgi_temp_path $work/$1/fastcgi; uwsgi_temp_path $work/$1/uwsgi; scgi_temp_path $work/$1/scgi;
    server { listen 127.0.0.1:$its_port; root ${3:-$work/root}; ${4:-} }
}
NGINX
    start "$1" nginx -p "$work/$1" -c "$work/$1/nginx.conf"
    ready "$its_port"
}

machine() {
    printf '%s, %s cores, Linux %s, .NET %s, %s' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)" "$(uname -r | cut -d- -f1)" \
        "$(dotnet --list-runtimes | sed -n 's/^Microsoft.NETCore.App \([^ ]*\).*/\1/p' | tail -1)" "$(findmnt -n -o FSTYPE --target "$work")"
}

if [ "${1:-}" = slow ]; then
    kestrel ours pipelines
    head -c $((1 << 30)) /dev/zero >"$work/root/large.bin"
    # One quick client first, so that what every server needs once is not counted.
    curl -sS --noproxy '*' -o /dev/null "http://127.0.0.1:$port_ours/large.bin"
    before=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid_ours/status")
    echo 5 >"/proc/$pid_ours/clear_refs" # The peak counts from here: proc(5).
    for ((i = 0; i < ${2:-200}; i++)); do
        curl -sS --noproxy '*' --limit-rate 640K --max-time 20 -o /dev/null "http://127.0.0.1:$port_ours/large.bin" 2>/dev/null &
        slow_clients+=($!)
    done
    wait "${slow_clients[@]}" || true # Each gives up.
    awk -v before="$before" '/^VmHWM/ { printf "memory of the server: %.0f MiB before, %.0f MiB at most\n", before / 1024, $2 / 1024 }' "/proc/$pid_ours/status"
    machine
    echo
    exit
fi

# cpu NAME: ticks that the server and its children have used.
cpu() {
    local -n pid="pid_$1"
    local child ticks=0 one
    for child in "$pid" $(cat "/proc/$pid/task/$pid/children"); do
        one=$(sed 's/.*) //' "/proc/$child/stat" | awk '{ print $12 + $13 }')
        ticks=$((ticks + one))
    done
    echo "$ticks"
}

median() {
    sort -g | awk '{ value[NR] = $1 } END { print (value[int((NR + 1) / 2)] + value[int((NR + 2) / 2)]) / 2 }'
}

# spread: the median, and the quartiles in parentheses.
spread() {
    sort -g | awk '{ value[NR] = $1 }
        function at(share, place) { place = 1 + share * (NR - 1); return value[int(place)] + (place - int(place)) * (value[int(place) + (place < NR)] - value[int(place)]) }
        END { printf "%.2f (%.2f–%.2f)", at(0.5), at(0.25), at(0.75) }'
}

# column CASE NAME FIELD
column() {
    awk -v what="$1" -v name="$2" -v field="$3" '$1 == what && $2 == name { print $field }' "$work/results"
}

# ratio CASE NAME FIELD: to plain Kestrel, or to the cache in memory, in the same round.
ratio() {
    paste <(column "$1" "$2" "$3") <(column "$1" $baseline "$3") | awk '{ print $1 / $2 }' | spread
}

# What every round has brought, for who takes ratios of rounds.
keep_results() {
    [ -z "${PIPELINES_FILE_RESULTS-}" ] || cp "$work/results" "$PIPELINES_FILE_RESULTS"
}

heading() {
    printf 'Measured on %s at commit `%s`.\n\n' "$(date -u +%F)" "$(git describe --always --dirty --abbrev=12 2>/dev/null || echo 'not known')"
    printf 'Load of the machine before: %s\n\n' "$load"
}

if [ "${1:-}" = entries ]; then
    count=${2:-1000000}
    "$server" "${3:-$work/entries}" 0 "fill=$count"
    # Of each process the first seconds, so three processes.
    printf '| entries | start and first hit, ms | look through the folder, s | memory an entry at most, B | afterwards, B |\n| ---: | ---: | ---: | ---: | ---: |\n'
    for i in 1 2 3; do
        "$server" "${3:-$work/entries}" 0 "measure=$count"
    done
    machine
    echo
    exit
fi

if [ "${1:-}" = uploads ]; then
    rounds=${2:-5} mebibytes=${3:-256} baseline=copied
    names=(copied saved resumed)
    mkdir "$work/uploads"
    kestrel copied "copied=$work/uploads"
    kestrel saved "saved=$work/uploads"
    kestrel resumed "resumed=$work/uploads"
    if command -v nginx >/dev/null; then
        # Its workers may run as another user.
        chmod a+rwx "$work" "$work/uploads"
        nginx_with nginx '' "$work/uploads" 'dav_methods PUT; client_max_body_size 0;'
        names+=(nginx)
    fi
    head -c $((mebibytes << 20)) /dev/urandom >"$work/upload.bin"
    for round in $(seq 0 "$rounds"); do
        for i in "${!names[@]}"; do
            name=${names[(i + round) % ${#names[@]}]}
            declare -n its_port="port_$name"
            before=$(cpu "$name")
            target=http://127.0.0.1:$its_port/upload.bin headers=(-H 'Expect:')
            if [ "$name" = resumed ]; then
                # The creation, a tenth of a millisecond, is not in the time. The name is upload.bin.
                target=http://127.0.0.1:$its_port$(curl -sS --noproxy '*' -f -o /dev/null -w '%header{location}' -X POST -H 'Tus-Resumable: 1.0.0' \
                    -H "Upload-Length: $((mebibytes << 20))" -H 'Upload-Metadata: filename dXBsb2FkLmJpbg==' "http://127.0.0.1:$its_port/uploads")
                headers+=(-X PATCH -H 'Tus-Resumable: 1.0.0' -H 'Upload-Offset: 0' -H 'Content-Type: application/offset+octet-stream')
            fi
            seconds=$(curl -sS --noproxy '*' -f "${headers[@]}" -T "$work/upload.bin" -o /dev/null -w '%{time_total}' "$target")
            after=$(cpu "$name")
            cmp "$work/upload.bin" "$work/uploads/upload.bin"
            rm "$work/uploads/upload.bin"
            # The first round warms up.
            ((round == 0)) || awk -v name="$name" -v s="$seconds" -v ticks=$((after - before)) -v hertz="$(getconf CLK_TCK)" -v mib="$mebibytes" \
                'BEGIN { print "upload", name, mib * 1.048576 / s, ticks / hertz / (mib / 1024) }'
        done
    done >"$work/results"
    keep_results
    heading
    printf '%s, curl -T, one upload at a time, %d rounds\n\n' "$(machine)" "$rounds"
    printf '| upload | way | MB/s | against the first | server CPU s a GiB | against the first |\n| --- | --- | --- | --- | --- | --- |\n'
    for name in "${names[@]}"; do
        case $name in
            copied) what='Body.CopyToAsync(FileStream)' ;;
            saved) what='SaveBodyAsync' ;;
            resumed) what='MapResumableUploads' ;;
            nginx) what='nginx, PUT' ;;
        esac
        printf '| %d MiB | %s | %.0f | %s | %.2f | %s |\n' "$mebibytes" "$what" "$(column upload "$name" 3 | median)" "$(ratio upload "$name" 3)" \
            "$(column upload "$name" 4 | median)" "$(ratio upload "$name" 4)"
    done
    exit
fi

mode=files
baseline=plain
if [ "${1:-}" = cache ]; then
    mode=cache baseline=memory
    shift
fi
rounds=${1:-3} seconds=${2:-2}
cases=("${@:3}")
if [ $mode = cache ]; then
    ((${#cases[@]} > 0)) || cases=(1024 65536 4194304)
    names=(memory files)
    ! command -v redis-server >/dev/null || names+=(redis)
else
    ((${#cases[@]} > 0)) || cases=(1024 16384 65536 1048576 104857600 1024x10000 16384x10000)
    names=(plain opens kept mapped)
fi

for case in "${cases[@]}"; do
    size=${case%x*}
    if [[ $case = *x* ]]; then
        mkdir "$work/root/$case"
        head -c $((size * ${case#*x})) /dev/urandom | split -b "$size" -a 5 --numeric-suffixes=1 --additional-suffix=.bin - "$work/root/$case/"
    else
        head -c "$size" /dev/urandom >"$work/root/$size.bin"
    fi
done
chmod -R a+rX "$work"

for name in "${names[@]}"; do
    case $name in
        kept) kestrel kept pipelines ;;
        files) kestrel files "files=$work/entries" ;;
        redis)
            port store
            start store redis-server --port "$port_store" --save '' --appendonly no --dir "$work" >"$work/redis.log"
            ready "$port_store"
            kestrel redis "redis=$port_store" ;;
        *) kestrel "$name" "$name" ;;
    esac
done
if [ $mode = files ] && command -v nginx >/dev/null; then
    nginx_with nginx_sendfile 'sendfile on; tcp_nopush on;'
    nginx_with nginx_read 'sendfile off;'
    nginx_with nginx_cache 'sendfile on; tcp_nopush on; open_file_cache max=512 inactive=10s;'
    names+=(nginx_sendfile nginx_read nginx_cache)
fi
if [ $mode = files ] && command -v caddy >/dev/null; then
    port caddy
    start caddy env HOME="$work" caddy file-server --listen "127.0.0.1:$port_caddy" --root "$work/root" 2>"$work/caddy.log"
    ready "$port_caddy"
    names+=(caddy)
fi

# measure NAME CASE SECONDS: requests a second, CPU us a request, CPU s a GB, p99 in us.
measure() {
    local -n its_port="port_$1"
    local before after path="/$2.bin"
    [[ $2 != *x* ]] || path="/$2/"
    before=$(cpu "$1")
    wrk -t 1 -c $connections -d "$3" -s "$work/report.lua" "http://127.0.0.1:$its_port$path" >"$work/wrk.log"
    after=$(cpu "$1")
    awk -v ticks=$((after - before)) -v hertz="$(getconf CLK_TCK)" '/^summary/ {
        if ($5 > 0) { print "errors: " $0 > "/dev/stderr"; exit 1 }
        print $2 / ($3 / 1e6), ticks / hertz * 1e6 / $2, ticks / hertz / ($4 / 1e9), $6 }' "$work/wrk.log"
}

cat >"$work/report.lua" <<'LUA'
init = function(args)
    requests, made = {}, 0
    local count = string.match(wrk.path, "x(%d+)/$")
    for i = 1, tonumber(count or 1) do
        requests[i] = wrk.format(nil, count and string.format("%s%05d.bin", wrk.path, i) or wrk.path)
    end
    math.randomseed(1)
end
request = function()
    return #requests == 1 and requests[1] or requests[math.random(#requests)]
end
done = function(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("summary %d %d %d %d %d\n", summary.requests, summary.duration, summary.bytes,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout, latency:percentile(99)))
end
LUA

for name in "${names[@]}"; do
    for case in "${cases[@]}"; do
        measure "$name" "$case" 1 >/dev/null
    done
done

for round in $(seq "$rounds"); do
    for case in "${cases[@]}"; do
        # A different one first each time.
        for i in "${!names[@]}"; do
            name=${names[(i + round) % ${#names[@]}]}
            printf '%s %s %s\n' "$case" "$name" "$(measure "$name" "$case" "$seconds")"
        done
    done
done >"$work/results"
keep_results

# size_text BYTES
size_text() {
    if (($1 >= 1 << 20)); then echo "$(($1 >> 20)) MiB"; else echo "$(($1 >> 10)) KiB"; fi
}

heading
printf '%s, wrk -t 1 -c %d, %d rounds of %d s\n\n' "$(machine)" $connections "$rounds" "$seconds"
printf '| file | server | requests/s | against the first | server CPU us a request | s per GB | per GB against the first | p99 ms |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n'
for case in "${cases[@]}"; do
    what_size=$(size_text "${case%x*}")
    [[ $case != *x* ]] || what_size="$what_size, ${case#*x} files"
    for name in "${names[@]}"; do
        case $name in
            memory) what='output cache in memory' ;;
            files) what='output cache in files, AddFileOutputCache' ;;
            redis) what='output cache in Redis' ;;
            plain) what='Kestrel, UseStaticFiles' ;;
            opens) what='with UseFilePipelines, MaxOpenFiles 0' ;;
            kept) what='with UseFilePipelines' ;;
            mapped) what='MapFiles' ;;
            nginx_sendfile) what='nginx, sendfile' ;;
            nginx_read) what='nginx, without' ;;
            nginx_cache) what='nginx, sendfile, open_file_cache' ;;
            caddy) what='caddy file-server' ;;
        esac
        printf "| %s | %s | %.0f | %s | %.1f | %.2f | %s | %.2f |\n" "$what_size" "$what" "$(column "$case" "$name" 3 | median)" "$(ratio "$case" "$name" 3)" \
            "$(column "$case" "$name" 4 | median)" "$(column "$case" "$name" 5 | median)" "$(ratio "$case" "$name" 5)" "$(column "$case" "$name" 6 | median | awk '{ print $1 / 1000 }')"
    done
done
