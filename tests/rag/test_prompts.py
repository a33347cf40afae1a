from rag.prompts import QA_PROMPTS


def test_qa_prompts_are_table_14_of_paper_002() -> None:
    assert QA_PROMPTS == {
        "normal": "Answer the following question based on the provided documents. Please provide the answer as a single word or term, "
        "without forming a complete sentence.",
        "unanswerable": "Answer the following question based on the provided documents. If you cannot find the answer in the provided "
        "documents, please respond with 'unanswerable'. Please provide the answer as a single word or term, without forming a complete sentence.",
        "conflict": "Answer the following question based on the provided documents. If multiple documents present different answers, please "
        "respond with 'conflict'. Please provide the answer as a single word or term, without forming a complete sentence.",
        "unanswerable_conflict": "Answer the following question based on the provided documents. If you cannot find the answer in the provided "
        "documents, please respond with 'unanswerable'. If multiple documents present different answers, please respond with 'conflict'. "
        "Please provide the answer as a single word or term, without forming a complete sentence.",
    }
