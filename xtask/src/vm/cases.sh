# What must hold of a command's memory in a delegated cgroup. Each line begins with PASS or FAIL; the last one is DONE.
export PATH=/usr/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
dmesg -n 1
MIB=128
TOLD="used more than $MIB MiB of memory"
top=/sys/fs/cgroup/services
mkdir $top
echo "+memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
echo "+memory +pids" > $top/cgroup.subtree_control
printf '[commands]\nprocesses = 60\n' > /etc/toolhost.toml
chmod 644 /etc/toolhost.toml

for uid in 0 1000; do
	mkdir -p /home/$uid/ws
	chown -R $uid:$uid /home/$uid
done

pass() { echo "PASS $1"; }
fail() { echo "FAIL $1: $(echo "$2" | tr '\n' ' ' | cut -c 1-600)"; }
holds() { # name, text, pattern
	if echo "$2" | grep -q -- "$3"; then pass "$1"; else fail "$1 (no \"$3\")" "$2"; fi
}
lacks() {
	if echo "$2" | grep -q -- "$3"; then fail "$1 (\"$3\")" "$2"; else pass "$1"; fi
}

# A cgroup as a manager of services makes one for each service.
number=0
service() {
	number=$((number + 1))
	base=$top/$number
	mkdir $base
}
delegated() { service; tool delegate $base $uid; }
# In the cgroup $place, as the user $uid, in the tier $tier.
toolhost_in() {
	HOME=/home/$uid tool run $place $uid toolhost --root /home/$uid/ws --state /home/$uid/state \
		--config /etc/toolhost.toml --sandbox $tier --command-memory ${MIB}M "$@" 2>&1
}
call() { toolhost_in $flags call bash "{\"command\": \"$1\", \"timeoutMs\": 100000}"; }
# Tries every door out of its cgroup.
leave() {
	call "echo tried; for f in $base/toolhost-*/*/cgroup.procs; do (echo 0 > \$f) && echo left; done; mkdir $base/mine && echo left"
}
# How many processes the kernel has killed for their memory below $base.
kills() { awk '$1 == "oom_kill" { print $2 }' $base/memory.events; }
flags=

# The kernel ends the command, the answer says so, and nothing is left but, perhaps, so many commands of others.
ended() {
	before=$(kills)
	rm -f /home/$uid/ws/went-on
	told=$(call "$2; touch went-on")
	holds "$1: the answer" "$told" "$TOLD"
	if [ -e /home/$uid/ws/went-on ]; then fail "$1: all of it" "it went on"; else pass "$1: all of it"; fi
	lacks "$1: not all was had" "$told" "had it all"
	if [ "$(kills)" -gt "$before" ]; then pass "$1: by the kernel"; else fail "$1: by the kernel" "no kill"; fi
	lacks "$1: no process is left" "$(ps)" "tool [om]"
	left=$(ls -d $base/toolhost-*/command-* 2>/dev/null)
	holds "$1: no cgroup is left" "$(echo "$left" | grep -c command-)" "^${3:-0}\$"
}

for uid in 0 1000; do
	for tier in full landlock; do
		who="uid $uid, $tier"
		delegated; place=$base
		holds "$who: doctor" "$(toolhost_in doctor)" "enforced by the kernel in cgroup $base/toolhost-"
		delegated; place=$base
		holds "$who: a small command" "$(call 'echo fine')" "fine"
		delegated; place=$base
		ended "$who: one process" "tool own 600"
		delegated; place=$base
		ended "$who: 20 processes" "tool many 20 30"
		delegated; place=$base
		ended "$who: files in memory" "dd if=/dev/zero of=\$TMPDIR/x bs=1M count=400; echo had it all"
		delegated; place=$base
		ended "$who: files without a name" "tool memfd 600"
		delegated; place=$base
		told=$(call 'for n in $(seq 100); do sleep 100 & done; echo had them all; exit')
		holds "$who: processes" "$told" "fork: Resource temporarily unavailable"
		delegated; place=$base
		told=$(leave)
		holds "$who: leaving, the trial" "$told" "tried"
		lacks "$who: leaving" "$told" "left"
	done
	tier=off
	who="uid $uid, $tier"
	delegated; place=$base
	holds "$who: leaving, without a fence" "$(leave)" "left"
	delegated; place=$base
	ended "$who: one process" "tool own 600"
done

tier=full
for uid in 0 1000; do
	who="uid $uid"
	# The host is somewhere in what the operator names: systemd allows no user more.
	delegated
	mkdir $base/shells
	place=$base/shells
	flags="--command-cgroup $base"
	ended "$who: a named cgroup" "tool own 600"
	# Two hosts at once.
	call 'sleep 40; echo still here' > /tmp/other-$uid &
	while ! ls -d $base/toolhost-*/command-* > /dev/null 2>&1; do sleep 0.1; done
	ended "$who: beside another host" "tool own 600" 1
	wait
	holds "$who: the other host" "$(cat /tmp/other-$uid)" "still here"
	flags=

	service; place=$base
	chown $uid $base $base/cgroup.procs $base/cgroup.subtree_control
	holds "$who: not delegated" "$(toolhost_in doctor)" "no cgroup is delegated"
	lacks "$who: not touched" "$(ls $base)" "toolhost-"

	delegated; place=$base
	tool run $base 0 sleep 1000 & sleeper=$!
	while ! grep -q . $base/cgroup.procs; do sleep 0.1; done
	told=$(toolhost_in doctor)
	holds "$who: a foreign process" "$told" "checked ten times a second"
	holds "$who: a foreign process is named" "$told" "($sleeper)"
	holds "$who: a foreign process stays" "$(cat $base/cgroup.procs)" "^$sleeper\$"
	kill $sleeper
	delegated; place=$base
	tool run $base 0 sleep 1000 & sleeper=$!
	while ! grep -q . $base/cgroup.procs; do sleep 0.1; done
	holds "$who: then the watcher ends it" "$(call 'tool many 20 30')" "$TOLD"
	kill $sleeper
done

uid=1000
delegated
service; place=$base
flags="--command-cgroup $top/$((number - 1))"
told=$(toolhost_in $flags doctor)
holds "uid 1000: a named cgroup that it may not enter" "$told" "checked ten times a second ($top/.*: no command can be started in it: Permission denied"
lacks "uid 1000: a named cgroup that it may not enter" "$(ls $top/$((number - 1)))" "toolhost-"
holds "uid 1000: then commands run" "$(call 'echo fine')" "fine"
flags=

uid=0
delegated; place=$base
echo -1000 > /proc/self/oom_score_adj
ended "a host that the kernel spares" "tool own 600"
echo 0 > /proc/self/oom_score_adj

echo DONE
poweroff -f
