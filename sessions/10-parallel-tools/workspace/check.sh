# check.sh NAME TENTHS: stands for a real check that takes a while
sleep "0.$2" 2>/dev/null || sleep 1
case "$1" in
tests) echo "tests: 1 failed"; exit 1 ;;
*) echo "$1: ok" ;;
esac
