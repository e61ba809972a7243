"""Tables as logs: columns of CSV, npz, JSON and MATLAB files, named by a channel map."""
