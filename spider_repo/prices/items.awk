# From CSV (sku,title,currency,price,date; fields may be quoted) to one JSON item a line.
function next_field(    end, value) {
    if (substr(rest, 1, 1) == "\"") {
        value = ""; rest = substr(rest, 2)
        while ((end = index(rest, "\"")) > 0) {
            value = value substr(rest, 1, end - 1); rest = substr(rest, end + 1)
            if (substr(rest, 1, 1) != "\"") break
            value = value "\""; rest = substr(rest, 2)
        }
        sub(/^[^,]*,?/, "", rest)
        return value
    }
    end = index(rest, ",")
    value = end ? substr(rest, 1, end - 1) : rest
    rest = end ? substr(rest, end + 1) : ""
    return value
}
function quoted(text) {
    gsub(/\\/, "&&", text); gsub(/"/, "\\\"", text); gsub(/[\001-\037]/, " ", text)
    return "\"" text "\""
}
{ sub(/\r$/, "") }
NR == 1 { sub(/^\357\273\277/, ""); if ($0 !~ /^"?sku"?,/) { print "ERROR: The first line is not sku,title,…" > "/dev/stderr"; exit 1 }; next }
$0 == "" { next }
{
    rest = $0
    sku = next_field(); title = next_field(); currency = next_field(); price = next_field(); date = next_field()
    if (price !~ /^[0-9]+(\.[0-9]+)?$/) { print "WARNING: line " NR " has no price: left out" > "/dev/stderr"; next }
    if (max != "" && price + 0 > max + 0) next
    sub(/^0+/, "", price); if (price == "" || price ~ /^\./) price = "0" price
    print "{\"sku\":" quoted(sku) ",\"title\":" quoted(title) ",\"currency\":" quoted(currency) ",\"price\":" price ",\"date\":" quoted(date) "}"
}
