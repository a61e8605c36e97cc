typedef int tamiz_nothing_here_yet;
