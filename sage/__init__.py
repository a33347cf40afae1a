"""The Sage: a LoRA-tuned language model that answers from the documents in a few words, or says that they hold no answer."""
