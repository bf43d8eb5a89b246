#!/bin/sh
# Make the two secrets that docker-compose.yml mounts, once; existing ones are kept.
#
# The folder is closed to other users (0700). The files in it are readable (0644), because Compose
# mounts them as they are and the containers read them under numeric accounts of their own.
set -eu
folder="$(dirname "$0")/secrets"
mkdir -p -m 700 "$folder"
chmod 700 "$folder"
umask 022

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

for name in database_password token; do
  if [ ! -s "$folder/$name" ]; then
    if [ "$name" = token ]; then printf 'rlv_'; fi >"$folder/$name"
    random >>"$folder/$name"
  fi
done
echo "Secrets are in $folder. Trainers use the token: export RLVITALS_TOKEN_FILE=$folder/token"
