from counterpoint.suggestion import suggestion


def test_the_most_similar_name_is_suggested():
    assert suggestion("colbret", ["colbert", "colberter", "dpr"]) == "did you mean 'colbert'?"
    assert suggestion("dpt", ["dpr"], end=" ") == "did you mean 'dpr'? "


def test_nothing_similar():
    assert suggestion("splade", ["colbert", "dpr"]) == ""
    assert suggestion("splade", iter(["colbert", "dpr"]), "choose from colbert, dpr", end=" ") == (
        "choose from colbert, dpr"
    )


def test_a_name_of_another_type():
    assert suggestion(7, ["bm25"], "it has bm25") == "it has bm25"
    assert suggestion(2020, ["2021"]) == "did you mean '2021'?"
