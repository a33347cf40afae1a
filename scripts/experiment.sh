#!/usr/bin/env bash
# Runs the commands at the head of conf/experiment/NAME.yaml, one after the other: scripts/experiment.sh table11 local [KEY=VALUE ...]
# What is given beside the profile goes to the last command. A command whose folder is complete goes on where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:?"expected an experiment, such as table7: a file of conf/experiment"}
profile=${2:-local}
file=conf/experiment/$name.yaml
[ -f "$file" ] || { echo "error: no experiment is called '$name'; there are: $(ls conf/experiment | sed 's/\.yaml$//' | tr '\n' ' ')" >&2; exit 2; }
python=${PYTHON:-python}
mapfile -t commands < <(sed -nE "s/^# ($profile: )?(python -m .*)$/\2/p" "$file" | sed "s/ profile=local$/ profile=$profile/")
for i in "${!commands[@]}"; do
  command=${commands[$i]#python }
  [ "$i" -lt $((${#commands[@]} - 1)) ] || for extra in "${@:3}"; do command+=" $(printf '%q' "$extra")"; done
  echo "+ python $command" >&2
  eval "$python $command"
done
