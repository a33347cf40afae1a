"""Corpora in their public forms, read as streams."""

import gzip
import json
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from data_gen.corpora import arxiv, jsonl, pubmed, wikipedia
from rag.errors import InputError

ARTICLE = """<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">{pmid}</PMID><Article><ArticleTitle>{title}</ArticleTitle>
{abstract}</Article></MedlineCitation>
<PubmedData><ArticleIdList><ArticleId IdType="pubmed">{pmid}</ArticleId></ArticleIdList></PubmedData></PubmedArticle>"""
PLAIN = ARTICLE.format(
    pmid="007",
    title="Iron &amp; <i>anaemia</i>.",
    abstract="<Abstract><AbstractText>Fe<sup>2+</sup> is low,\n  p &lt; 0.05.</AbstractText><CopyrightInformation>X</CopyrightInformation></Abstract>",
)
PARTS = ARTICLE.format(
    pmid="12",
    title="β-thal",
    abstract='<Abstract><AbstractText Label="AIM">To see.</AbstractText><AbstractText Label="UNLABELLED">Seen.</AbstractText>'
    '<AbstractText Label="X"/></Abstract>'
    "<!-- none --><OtherAbstract><AbstractText>Vu.</AbstractText></OtherAbstract>",
)
NONE = ARTICLE.format(pmid="13", title="No abstract", abstract="")


def pubmed_set(*articles: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
        f'"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n<PubmedArticleSet>{"".join(articles)}'
        "<DeleteCitation><PMID>1</PMID></DeleteCitation></PubmedArticleSet>"
    )


def write(path: Path, content: str) -> Path:
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["pubmed25n0001.xml", "pubmed25n0001.xml.gz"])
def test_pubmed_gives_title_and_abstract_by_pmid(name: str, tmp_path: Path) -> None:
    dropped: Counter[str] = Counter()
    found = list(pubmed((write(tmp_path / name, pubmed_set(PLAIN, NONE, PARTS)),), dropped))
    assert [(d.id, d.title, d.text) for d in found] == [
        ("007", "Iron & anaemia.", "Fe2+ is low, p < 0.05."),
        ("12", "β-thal", "AIM: To see. Seen."),
    ]
    assert dropped == {"citation without an abstract": 1}


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    write(tmp_path / "pubmed25n0002.xml.gz", pubmed_set(PLAIN))
    write(tmp_path / "pubmed25n0001.xml", pubmed_set(PARTS))
    write(tmp_path / "README.txt", "no xml")
    assert [d.id for d in pubmed((tmp_path,))] == ["12", "007"]


@pytest.mark.parametrize(
    ("load", "address"),
    [(pubmed, "https://ftp.ncbi.nlm.nih.gov"), (wikipedia, "https://dl.fbaipublicfiles.com"), (arxiv, "https://www.kaggle.com")],
)
def test_a_corpus_that_is_not_there_is_said_where_to_get(load, address: str, tmp_path: Path) -> None:
    for path, found in ((tmp_path / "absent", "found nothing"), (tmp_path, r"found a folder without \.\w+ or ")):
        with pytest.raises(
            InputError, match=rf"expected a file of .* or a folder of .*{found}.*get it from {address}.* set documents\.path"
        ):
            list(load((path,)))
    with pytest.raises(InputError, match=r"folder of \.json or .*files, found neither; set documents\.path"):
        list(jsonl((tmp_path,)))


def test_pubmed_is_a_stream(tmp_path: Path) -> None:
    """Documents before a fault come out before it: the file was not read as a whole."""
    whole = pubmed_set(
        *(
            ARTICLE.format(pmid=i, title="T", abstract=f"<Abstract><AbstractText>{'word ' * 500}</AbstractText></Abstract>")
            for i in range(99)
        )
    )
    documents = pubmed((write(tmp_path / "cut.xml", whole[:-2000]),))
    assert [d.id for d in islice(documents, 50)] == [str(i) for i in range(50)]
    with pytest.raises(InputError, match=r"cut\.xml: not XML"):
        list(documents)


def test_files_that_are_no_pubmed_are_named(tmp_path: Path) -> None:
    packed = gzip.compress(pubmed_set(PLAIN, PARTS).encode())
    (tmp_path / "cut.xml.gz").write_bytes(packed[:-30])
    (tmp_path / "fake.xml.gz").write_bytes(b"no gzip")
    for name in ("cut.xml.gz", "fake.xml.gz"):
        with pytest.raises(InputError, match=rf"{name}: could not be read to its end"):
            list(pubmed((tmp_path / name,)))
    with pytest.raises(InputError, match="expected a PubmedArticleSet, got 'html'"):
        list(pubmed((write(tmp_path / "page.xml", "<html><body/></html>"),)))
    with pytest.raises(InputError, match="one without"):
        list(pubmed((write(tmp_path / "nameless.xml", pubmed_set(PLAIN.replace("PMID", "Nr"))),)))


def test_hostile_xml_ends_in_an_error(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.txt", "the key")
    outside = f'<!DOCTYPE PubmedArticleSet [<!ENTITY x SYSTEM "{secret.as_uri()}">]><PubmedArticleSet>{PLAIN.replace("low", "&x;")}</PubmedArticleSet>'
    with pytest.raises(InputError, match="not XML: undefined entity"):
        list(pubmed((write(tmp_path / "outside.xml", outside),)))
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<!DOCTYPE PubmedArticleSet [<!ENTITY a0 "{"x" * 100}">{entities}]><PubmedArticleSet>{PLAIN.replace("low", "&a11;")}</PubmedArticleSet>'
    with pytest.raises(InputError, match="not XML: limit on input amplification"):
        list(pubmed((write(tmp_path / "bomb.xml", bomb),)))


@pytest.mark.parametrize("name", ["psgs_w100.tsv", "psgs_w100.tsv.gz"])
def test_wikipedia_passages_keep_their_quotes(name: str, tmp_path: Path) -> None:
    table = 'id\ttext\ttitle\n1\t"Aaron ( or ; ""Ahärôn"") is a prophet."\tAaron\n2\tNo quotes, no.\t"The ""A"""\n3\t" "\tNone\n'
    dropped: Counter[str] = Counter()
    found = list(wikipedia((write(tmp_path / name, table),), dropped))
    assert [(d.id, d.title, d.text) for d in found] == [
        ("1", "Aaron", 'Aaron ( or ; "Ahärôn") is a prophet.'),
        ("2", 'The "A"', "No quotes, no."),
    ]
    assert dropped == {"document without text": 1}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("1\ttext\ttitle\n", "expected the columns .* in the first row, got"),
        ("id\ttext\ttitle\n1\ttext\n", "row 2: expected 3 cells, got 2"),
        ("id\ttext\ttitle\n\ttext\ttitle\n", "row 2: .*visible character"),
        ("", "expected a table of passages, found an empty file"),
    ],
)
def test_tables_that_are_no_passages_are_named(table: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"psgs\.tsv: {message}"):
        list(wikipedia((write(tmp_path / "psgs.tsv", table),)))


def test_arxiv_keeps_one_category(tmp_path: Path) -> None:
    papers = [
        {"id": "0704.0001", "title": "On\n  dust", "abstract": "  Dust\nis grey.\n", "categories": "hep-ph astro-ph.GA", "authors": "X"},
        {"id": "astro-ph/9607156", "title": "T", "abstract": "A mesh.", "categories": "astro-ph"},
        {"id": "1", "title": "T", "abstract": "Other.", "categories": "math.CO astro-phx"},
        {"id": "2", "title": "T", "abstract": " ", "categories": "astro-ph"},
    ]
    path = write(tmp_path / "arxiv.json", "\n".join(map(json.dumps, papers)))
    dropped: Counter[str] = Counter()
    assert [(d.id, d.title, d.text) for d in arxiv((path,), dropped=dropped)] == [
        ("0704.0001", "On dust", "Dust is grey."),
        ("astro-ph/9607156", "T", "A mesh."),
    ]
    assert dropped == {"paper of another category": 1, "document without text": 1}
    with pytest.raises(InputError, match=r"arxiv\.json:1: abstract: Field required"):
        list(arxiv((write(tmp_path / "arxiv.json", '{"id": "1", "title": "T", "categories": "x"}'),)))


def test_lines_of_your_own(tmp_path: Path) -> None:
    lines = '{"pmid": 7, "head": null, "abstract": "Fe²⁺ is low."}\n\n{"pmid": "007", "head": "H", "abstract": null}\n'
    path = write(tmp_path / "own.jsonl.gz", lines)
    dropped: Counter[str] = Counter()
    assert [(d.id, d.title, d.text) for d in jsonl((path,), id="pmid", title="head", text="abstract", dropped=dropped)] == [
        ("7", "", "Fe²⁺ is low.")
    ]
    assert dropped == {"document without text": 1}
    assert [d.title for d in jsonl((path,), id="pmid", title=None, text="abstract")] == [""]
    with pytest.raises(InputError, match=r"own\.jsonl\.gz:1: no key 'id'.*set documents\.id"):
        list(jsonl((path,)))
    noted = write(tmp_path / "noted.jsonl", '{"id": "1", "title": "", "text": "x", "metadata": {"effective": "2025-01-01"}}\n')
    assert [d.metadata for d in jsonl((noted,))] == [{"effective": "2025-01-01"}]
    assert [d.metadata for d in jsonl((noted,), metadata=None)] == [{}]
    with pytest.raises(InputError, match=r"bad\.jsonl:2: .*expected text, got int 5"):
        list(jsonl((write(tmp_path / "bad.jsonl", '{"id": 1, "title": "", "text": "x"}\n{"id": 2, "title": "", "text": 5}'),)))
    with pytest.raises(InputError, match=r"bad\.jsonl:1: .*[Ii]nvalid JSON"):
        list(jsonl((write(tmp_path / "bad.jsonl", "{"),)))
