"""Options chosen by a study: trials of a model, judged on the validation part."""
