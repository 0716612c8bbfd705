#!/bin/sh
# debian_python.sh VERSION FOLDER: unpack a Python that is too new for this machine from the packages of Debian
# unstable into FOLDER/root, without installing it or root rights. It starts with its own C library.
set -eu
python=python$1 folder=$2 root=$2/root
program=$root/usr/bin/$python keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# One that is here, or that was unpacked before, in a checkout that has not moved since.
if "$python" -c "" 2>/dev/null; then exit; fi
if [ ! -e "$program.real" ]; then
	archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/*$') || {
		echo "There is no $python here, and no Debian archive to take it from."
		exit
	}
	rm -rf "$folder"
	mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial"
	: >"$folder/status"
	echo "deb [signed-by=$keyring] $archive unstable main" >"$folder/sources.list"
	get() {
		apt-get -qq --yes --no-install-recommends -o Debug::NoLocking=true -o Dir::Etc::sourceparts=- \
			-o "Dir::Etc::sourcelist=$folder/sources.list" -o "Dir::State::status=$folder/status" \
			-o "Dir::State=$folder/state" -o "Dir::Cache=$folder/cache" "$@"
	}
	get update
	get install --download-only "$python" libstdc++6 # wheels expect this library on every machine
	for package in "$folder"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
	rm -rf "$folder/state" "$folder/cache"
	mv "$program" "$program.real"
fi
loader=$(echo "$root"/usr/lib/*-linux-gnu*/ld-linux-*.so*)
cat >"$program" <<EOF
#!/bin/sh
exec $loader --library-path ${loader%/*} --argv0 "\$0" $program.real "\$@"
EOF
chmod +x "$program"
