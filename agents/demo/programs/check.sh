# Computes the figures again with awk, straight from the CSV, and compares them with figures.csv.
# Ends with an error if one of them differs by more than a rounding error.
set -eu
awk -F, '
NR == FNR { claimed[$1] = $2; next }
FNR == 1 { next }
{
    year = "year " substr($1, 1, 4); month = "month " substr($1, 6, 2); label = "label " $6
    wet = $2 > 0
    rain[year] += $2; rain[month] += $2
    wet_days[year] += wet; wet_days[month] += wet; wet_days[label] += wet
    days[year]++; days[month]++; days[label]++
    high[month] += $3; low[month] += $4
    middle[year] += ($3 + $4) / 2
    hot[year] += $3 >= 30
    if (!(year in years)) { years[year]; year_count++ }
}
END {
    for (key in days) {
        if (key ~ /^month/) {
            found[key " rain_mm"] = rain[key] / year_count
            found[key " wet_days_pct"] = 100 * wet_days[key] / days[key]
            found[key " high"] = high[key] / days[key]
            found[key " low"] = low[key] / days[key]
        } else if (key ~ /^year/) {
            found[key " rain_mm"] = rain[key]
            found[key " wet_days"] = wet_days[key]
            found[key " mean_temp"] = middle[key] / days[key]
            found[key " hot_days"] = hot[key]
        } else {
            found[key " days"] = days[key]
            found[key " wet_days"] = wet_days[key]
        }
    }
    for (key in found) {
        agrees = key in claimed
        gap = found[key] - claimed[key]
        if (!agrees || gap > 0.000001 || gap < -0.000001) {
            printf "%s: %s was claimed, awk has %s\n", key, claimed[key], found[key]
            wrong++
        }
        compared++
    }
    for (key in claimed) if (!(key in found)) { printf "%s: only claimed\n", key; wrong++ }
    printf "%d figures compared, %d differ\n", compared, wrong
    exit (wrong > 0 || compared == 0)
}
' /sandbox/shared/figures.csv /sandbox/user_uploads/seattle-weather.csv
