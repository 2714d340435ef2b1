mod lights;
