//! An XNNPACK delegate backend for TFLite and Circle models.
