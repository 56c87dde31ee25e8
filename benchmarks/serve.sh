#!/usr/bin/env bash
# Serves files by Kestrel without and with app.UseFilePipelines(), and by nginx with sendfile where it is installed: all up at once, measured in turns by wrk.
#     bash benchmarks/serve.sh [ROUNDS [SECONDS]]      5 rounds of 4 s for each size and server by default
#     bash benchmarks/serve.sh slow [CLIENTS]          200 slow clients on a 1 GiB file: memory of the server, and whether every body is right
# Needs wrk. Prints Markdown tables. Requests a second are medians of the rounds; the ratio is the median of the rounds' own ratios.
set -euo pipefail
export LC_NUMERIC=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly connections=16 sizes=(1024 65536 1048576) plain_port=5201 ours_port=5202 nginx_port=5203
work=$(mktemp -d)
servers=()
load=$(cut -d' ' -f1 /proc/loadavg)
finish() {
    ((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

dotnet build benchmarks/StaticFileServer -c Release -v quiet --nologo
dotnet build benchmarks/SlowClients -c Release -v quiet --nologo
server=benchmarks/StaticFileServer/bin/Release/net10.0/StaticFileServer
clients=benchmarks/SlowClients/bin/Release/net10.0/SlowClients
mkdir "$work/root"
for size in "${sizes[@]}"; do
    head -c "$size" /dev/urandom >"$work/root/$size.bin"
done

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

start plain "$server" "$work/root" $plain_port plain
start ours "$server" "$work/root" $ours_port pipelines
ready $plain_port
ready $ours_port
machine() {
    printf '%s, %s cores, Linux %s, .NET %s, %s' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)" "$(uname -r | cut -d- -f1)" \
        "$(dotnet --list-runtimes | sed -n 's/^Microsoft.NETCore.App \([^ ]*\).*/\1/p' | tail -1)" "$(findmnt -n -o FSTYPE --target "$work")"
}

if [ "${1:-}" = slow ]; then
    "$clients" make "$work/root/large.bin" $((1 << 30))
    # One quick client first, so that what every server needs once is not counted.
    "$clients" read $ours_port /large.bin $((1 << 30)) 1 0 >/dev/null
    before=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid_ours/status")
    echo 5 >"/proc/$pid_ours/clear_refs" # The peak counts from here: proc(5).
    "$clients" read $ours_port /large.bin $((1 << 30)) "${2:-200}" 20
    awk -v before="$before" '/^VmHWM/ { printf "memory of the server: %.0f MiB before, %.0f MiB at most\n", before / 1024, $2 / 1024 }' "/proc/$pid_ours/status"
    machine
    echo
    exit
fi

rounds=${1:-5} seconds=${2:-4}
names=(plain ours)
if command -v nginx >/dev/null; then
    cat >"$work/nginx.conf" <<NGINX
daemon off;
worker_processes 2;
pid $work/nginx.pid;
error_log $work/nginx.log;
events { worker_connections 1024; }
http {
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
    client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fastcgi; uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi;
    server { listen 127.0.0.1:$nginx_port; root $work/root; }
}
NGINX
    chmod -R a+rX "$work"
    start nginx nginx -p "$work" -c "$work/nginx.conf"
    ready $nginx_port
    names+=(nginx)
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

# measure NAME SIZE SECONDS: requests, seconds, bytes, CPU seconds.
measure() {
    local -n port="$1_port"
    local before after
    before=$(cpu "$1")
    wrk -t 1 -c $connections -d "$3" -s "$work/report.lua" "http://127.0.0.1:$port/$2.bin" >"$work/wrk.log"
    after=$(cpu "$1")
    awk -v ticks=$((after - before)) -v hertz="$(getconf CLK_TCK)" '/^summary/ {
        if ($5 > 0) { print "errors: " $0 > "/dev/stderr"; exit 1 }
        print $2 / ($3 / 1e6), ticks / hertz / ($4 / 1e9) }' "$work/wrk.log"
}

cat >"$work/report.lua" <<'LUA'
done = function(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("summary %d %d %d %d\n", summary.requests, summary.duration, summary.bytes,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
LUA

for name in "${names[@]}"; do
    for size in "${sizes[@]}"; do
        measure "$name" "$size" 2 >/dev/null
    done
done

for round in $(seq "$rounds"); do
    for size in "${sizes[@]}"; do
        # A different one first each time.
        for i in "${!names[@]}"; do
            name=${names[(i + round) % ${#names[@]}]}
            printf '%s %s %s\n' "$size" "$name" "$(measure "$name" "$size" "$seconds")"
        done
    done
done >"$work/results"

median() {
    sort -g | awk '{ value[NR] = $1 } END { print (value[int((NR + 1) / 2)] + value[int((NR + 2) / 2)]) / 2 }'
}

# column SIZE NAME FIELD
column() {
    awk -v size="$1" -v name="$2" -v field="$3" '$1 == size && $2 == name { print $field }' "$work/results"
}

printf 'Measured on %s at commit `%s`.\n\n' "$(date -u +%F)" "$(git describe --always --dirty --abbrev=12 2>/dev/null || echo 'not known')"
printf 'Load of the machine before: %s\n\n' "$load"
printf '%s, wrk -t 1 -c %d, %d rounds of %d s\n\n' "$(machine)" $connections "$rounds" "$seconds"
printf '| file | server | requests/s | against plain Kestrel | server CPU s per GB |\n| --- | --- | --- | --- | --- |\n'
for size in "${sizes[@]}"; do
    for name in "${names[@]}"; do
        case $name in
            plain) what='Kestrel, UseStaticFiles' ;;
            ours) what='the same with UseFilePipelines' ;;
            nginx) what='nginx, sendfile' ;;
        esac
        ratio=$(paste <(column "$size" "$name" 3) <(column "$size" plain 3) | awk '{ print $1 / $2 }' | median)
        case $size in
            1024) what_size='1 KiB' ;;
            65536) what_size='64 KiB' ;;
            *) what_size='1 MiB' ;;
        esac
        printf "| %s | %s | %.0f | %.2f | %.2f |\n" "$what_size" "$what" "$(column "$size" "$name" 3 | median)" "$ratio" "$(column "$size" "$name" 4 | median)"
    done
done
