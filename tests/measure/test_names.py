import pytest

from counterpoint.errors import ConfigError
from counterpoint.measure import parse_measure


@pytest.mark.parametrize(
    "expected, spellings",
    [
        ("nDCG@10", "nDCG@10 ndcg@10 NDCG@10 ndcg_cut_10 ndcg_cut.10 nDCG(cutoff=10)"),
        ("nDCG", "nDCG ndcg"),
        ("AP", "AP map MAP ap"),
        ("AP@100", "AP@100 map_cut_100 map@100"),
        ("R@100", "R@100 recall_100 Recall@100 r@100"),
        ("P@20", "P@20 P_20 p@20 Precision@20"),
        ("RR", "RR recip_rank MRR"),
        ("RR@10", "RR@10 mrr@10 MRR@10"),
        ("Success@5", "Success@5 success_5"),
        ("IPrec@0.5", "IPrec@0.5 iprec_at_recall_0.50"),
        ("NumRet(rel=1)", "NumRelRet num_rel_ret"),
        ("SetF(beta=2.0)", "SetF(beta=2)"),
        ("Rprec", "Rprec rprec"),
        ("Bpref", "Bpref bpref"),
        ("Judged@10", "Judged@10 judged@10"),
        ("AP(rel=2)@100", "AP(rel=2)@100 map(rel=2)@100"),
        ("AP(rel=2,judged_only=True)", "AP(judged_only=True,rel=2) map(rel=2,judged_only=True)"),
        ("ERR(judged_only=True)@20", "ERR(judged_only=True)@20 ERR(judged_only=True,cutoff=20)"),
        ("SetR", "SetR(judged_only=False) set_recall"),
        ("IPrec@0.25", "IPrec@0.25 iprec_at_recall_0.25"),
    ],
)
def test_usual_names(expected, spellings):
    assert {str(parse_measure(text)) for text in spellings.split()} == {expected}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("nDGC@10", "unknown measure 'nDGC@10'; did you mean 'nDCG@10'"),
        ("recal", "did you mean 'R@10'"),
        ("xyz", "well-known ones are"),
        ("", "well-known ones are"),
        ("R", "cutoff is missing; write R@10"),
        ("IPrec", "recall is missing; write IPrec@0.5"),
        ("BPM@10", "max_rel is missing; write max_rel="),
        ("P@0", "a positive whole number, found 0"),
        ("P@ten", "found 'ten'"),
        ("P@True", "found True"),
        ("P@1.5", "found 1.5"),
        ("IPrec@1.5", "a number from 0 to 1 with at most two digits after the point, found 1.5"),
        ("Bpref(judged_only=1)", "judged_only must be True or False, found 1"),
        ("AP(rel='x')", "rel must be a positive whole number, found 'x'"),
        ("AP(rel=-1)", "rel must be a positive whole number, found -1"),
        (
            "nDCG(gains={1:-1})",
            "gains must be a mapping from grades to whole numbers from 0 up, found {1: -1}",
        ),
        ("nDCG(dcg='x')", "dcg must be a known name, found 'x'"),
        ("AP(foo=1)", "AP has no 'foo'; it takes cutoff, rel, judged_only"),
        ("set_P_10", "SetP has no 'cutoff'"),
        ("AP(2)", "expected settings such as"),
        ("AP(rel=)", "expected settings such as"),
        ("AP(rel=print())", "another plain value, found 'print()'"),
    ],
)
def test_what_is_wrong_is_named(text, expected):
    with pytest.raises(ConfigError) as error:
        parse_measure(text)
    assert expected in str(error.value)
