"""The graphs that `fetch` knows by name, as their publishers describe them.

The numbers of vertices and entries are those of the index of the SuiteSparse Matrix Collection, and
for roads the numbers of vertices of the 9th DIMACS Implementation Challenge.
"""

from __future__ import annotations

from typing import NamedTuple

SUITESPARSE = "https://sparse.tamu.edu/MM"
DIMACS9 = "https://www.diag.uniroma1.it/challenge9/data/USA-road-d"


class Dataset(NamedTuple):
    """A graph that can be fetched.

    `name` is GROUP/NAME in the SuiteSparse Matrix Collection, or DIMACS9/NAME. `vertices` and
    `entries` are the rows and the stored entries of its matrix as published, an undirected edge
    counted in both directions; None where they are not. `sha256` is the checksum of the file at
    `url`, None where none is published: then that of the first download is kept.
    """

    name: str
    url: str
    vertices: int | None = None
    entries: int | None = None
    sha256: str | None = None


def suitesparse(
    name: str, vertices: int | None = None, entries: int | None = None, sha256: str | None = None
) -> Dataset:
    """The matrix GROUP/NAME of the SuiteSparse Matrix Collection."""
    return Dataset(name, f"{SUITESPARSE}/{name}.tar.gz", vertices, entries, sha256)


def road(region: str, vertices: int, entries: int | None = None) -> Dataset:
    """The roads of a region of the USA, weighted by length (DIMACS)."""
    name = f"USA-road-d.{region}"
    return Dataset(f"DIMACS9/{name}", f"{DIMACS9}/{name}.gr.gz", vertices, entries)


CATALOG = (
    # social networks, the web, citations, roads (SNAP)
    suitesparse("SNAP/amazon0601", 403_394, 3_387_388),
    suitesparse("SNAP/as-Skitter", 1_696_415, 22_190_596),
    suitesparse("SNAP/ca-GrQc", 5_242, 28_980),
    suitesparse("SNAP/ca-HepTh", 9_877, 51_971),
    suitesparse("SNAP/cit-Patents", 3_774_768, 16_518_948),
    suitesparse("SNAP/com-Amazon", 334_863, 1_851_744),
    suitesparse("SNAP/com-DBLP", 317_080, 2_099_732),
    suitesparse("SNAP/com-Friendster", 65_608_366, 3_612_134_270),
    suitesparse("SNAP/com-LiveJournal", 3_997_962, 69_362_378),
    suitesparse("SNAP/com-Orkut", 3_072_441, 234_370_166),
    suitesparse("SNAP/com-Youtube", 1_134_890, 5_975_248),
    suitesparse("SNAP/email-Enron", 36_692, 367_662),
    suitesparse("SNAP/email-Eu-core", 1_005, 25_571),
    suitesparse("SNAP/roadNet-CA", 1_971_281, 5_533_214),
    suitesparse("SNAP/roadNet-PA", 1_090_920, 3_083_796),
    suitesparse("SNAP/roadNet-TX", 1_393_383, 3_843_320),
    suitesparse(
        "SNAP/soc-Epinions1",
        75_888,
        508_837,
        "ed75c7f919799a8571aab592e2b89d8e54bc734530b4b8c5ab2071386ecd698e",
    ),
    suitesparse("SNAP/soc-LiveJournal1", 4_847_571, 68_993_773),
    suitesparse("SNAP/soc-Pokec", 1_632_803, 30_622_564),
    suitesparse("SNAP/twitter7", 41_652_230, 1_468_365_182),
    suitesparse("SNAP/web-BerkStan", 685_230, 7_600_595),
    suitesparse("SNAP/web-Google", 916_428, 5_105_039),
    suitesparse("SNAP/web-NotreDame", 325_729, 1_497_134),
    suitesparse("SNAP/web-Stanford", 281_903, 2_312_497),
    suitesparse("SNAP/wiki-Talk", 2_394_385, 5_021_410),
    suitesparse("SNAP/wiki-topcats", 1_791_489, 28_511_807),
    # crawls of the web and social networks (WebGraph, Laboratory for Web Algorithmics)
    suitesparse("LAW/amazon-2008", 735_323, 5_158_388),
    suitesparse("LAW/arabic-2005", 22_744_080, 639_999_458),
    suitesparse("LAW/cnr-2000", 325_557, 3_216_152),
    suitesparse("LAW/dblp-2010", 326_186, 1_615_400),
    suitesparse("LAW/enron", 69_244, 276_143),
    suitesparse("LAW/eu-2005", 862_664, 19_235_140),
    suitesparse("LAW/hollywood-2009", 1_139_905, 113_891_327),
    suitesparse("LAW/in-2004", 1_382_908, 16_917_053),
    suitesparse("LAW/indochina-2004", 7_414_866, 194_109_311),
    suitesparse("LAW/it-2004", 41_291_594, 1_150_725_436),
    suitesparse("LAW/ljournal-2008", 5_363_260, 79_023_142),
    suitesparse("LAW/sk-2005", 50_636_154, 1_949_412_601),
    suitesparse("LAW/uk-2002", 18_520_486, 298_113_762),
    suitesparse("LAW/uk-2005", 39_459_925, 936_364_282),
    suitesparse("LAW/webbase-2001", 118_142_155, 1_019_903_190),
    # the 10th DIMACS Implementation Challenge
    suitesparse("DIMACS10/belgium_osm", 1_441_295, 3_099_940),
    suitesparse("DIMACS10/citationCiteseer", 268_495, 2_313_294),
    suitesparse("DIMACS10/coAuthorsDBLP", 299_067, 1_955_352),
    suitesparse("DIMACS10/coPapersDBLP", 540_486, 30_491_458),
    suitesparse("DIMACS10/delaunay_n24", 16_777_216, 100_663_202),
    suitesparse("DIMACS10/europe_osm", 50_912_018, 108_109_320),
    suitesparse("DIMACS10/kron_g500-logn16", 65_536, 4_912_469),
    suitesparse("DIMACS10/kron_g500-logn21", 2_097_152, 182_082_942),
    suitesparse("DIMACS10/luxembourg_osm", 114_599, 239_332),
    suitesparse("DIMACS10/rgg_n_2_24_s0", 16_777_216, 265_114_400),
    suitesparse("DIMACS10/road_central", 14_081_816, 33_866_826),
    suitesparse("DIMACS10/road_usa", 23_947_347, 57_708_624),
    # the GAP benchmark
    suitesparse("GAP/GAP-kron", 134_217_726, 4_223_264_644),
    suitesparse("GAP/GAP-road", 23_947_347, 57_708_624),
    suitesparse("GAP/GAP-twitter", 61_578_415, 1_468_364_884),
    suitesparse("GAP/GAP-urand", 134_217_728, 4_294_966_740),
    suitesparse("GAP/GAP-web", 50_636_151, 1_930_292_948),
    # small enough to draw
    suitesparse("Newman/karate", 34, 156),
    # lengths of roads; published are the arcs, with parallel ones: those of NY and BAY were counted
    # without them
    road("NY", 264_346, 730_100),
    road("BAY", 321_270, 794_830),
    road("COL", 435_666),
    road("FLA", 1_070_376),
    road("NW", 1_207_945),
    road("NE", 1_524_453),
    road("CAL", 1_890_815),
    road("LKS", 2_758_119),
    road("E", 3_598_623),
    road("W", 6_262_104),
    road("CTR", 14_081_816),
    road("USA", 23_947_347),
)
