"""Puts points into groups, and prints how many are in each."""
import sys

import numpy
from sklearn.decomposition import PCA
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

points = numpy.loadtxt(sys.argv[1], delimiter=",")
wide = StandardScaler().fit_transform(PolynomialFeatures(3).fit_transform(points[:, 1:]))
found = PCA(n_components=3, svd_solver="covariance_eigh").fit(wide)
numpy.savetxt("out/sklearn", found.explained_variance_ratio_, fmt="%.6f")
