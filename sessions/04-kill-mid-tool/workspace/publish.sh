# Publishes the release notes. Running it twice would publish them twice.
echo "publishing notes.md"
sleep 3
echo "published notes.md" >> effects.txt
echo "done"
