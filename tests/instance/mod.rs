mod lifecycle;
