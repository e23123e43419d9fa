# code.sh CODE COMMAND...: fails unless the command ends with this code; 2 and 3 are without an answer, 3+ has one.
code=$1; shift
out=$("$@"; got=$?; echo .; exit $got); got=$?
out=${out%.} # the dot has kept the newlines at the end
printf %s "$out"
case $code$out in 0* | 1* | 2 | 3 | 3+?*) [ "$got" = "${code%+}" ] ;; *) false ;; esac || { echo "code $got, want $code" >&2; exit 1; }
