"""Which of scikit-learn's checks of estimators no classifier of images can pass, and why.

check_estimator(ScaleInvariantClassifier(), expected_failed_checks=NOT_FOR_IMAGES)
"""

NO_IMAGES = "it fits rows of 2 to 10 numbers, of any range, which are no images and are refused"
NOT_FOR_IMAGES = dict.fromkeys(
    (
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_classifiers_train",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_nan_inf",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_supervised_y_2d",
    ),
    NO_IMAGES,
)
"""The name of each check, and the reason. A subclass in the tests draws rows as pictures and passes all."""
